"""Endings: the close of the day, what was learned, and the last line."""

AWAY = (
    "When the sun went down, {h} walked home with a smile.", "Then {h} went home and had {#snack}.", "Soon the sky turned pink, and it was time to go home.",
    "Back home, {h} ate {#snack} and went to bed, tired and happy.", "On the way home, {h} hummed {#song}.", "{h} skipped all the way home.",
)
HOME = (
    "That evening, {h} told the whole story at supper.", 
    "That night, {h} fell asleep with a smile on {h.his} face.", "In the evening, {h} lay in bed and thought about the day.", "As the stars came out, {h} yawned and closed {h.his} eyes.",
    "That night, the moon shone on {h.s} bed, and {h.he} slept soundly.", "{h} went to bed early that night and dreamed sweet dreams.",
    "At bedtime, {h} was still smiling.", "That evening, there was {#snack} for supper, and {h} ate every bit.", "When {h} went to bed, the [crickets|owls|frogs] were singing." , "Late that night, a soft wind sang {h} to sleep.",
    "In bed, {h} whispered, \"Good night, world.\"", "That night, {h} dreamed of {#flower} and sunshine.", "\"Tomorrow I will do it all again,\" thought {h} before {h.he} fell asleep.", 
)
LAST = (
    "It had been a wonderful day.", "And that was the best day of all.", "What a day it had been!", "And they all lived happily ever after.", "The end.",
    "{h} would never forget that day.", "It was the happiest day of the year.", "{h} smiled and smiled.", "And that is how it all ended.", "Who knows what tomorrow will bring?",
    "{h} told this story many, many times.", "And if you listen closely, you can still hear {h.him} laugh.", "All was well.", "There was no happier {h.kind} in the whole world.", "What a story to tell!", "{h} could hardly wait for tomorrow.", "And {h} was happy.", "Everything was well again.", "It was a day to remember.",
)
TIMELESS = tuple(line for line in LAST if "day" not in line and "tomorrow" not in line)
MORALS = {
    "help": ("{h} learned that it is good to ask for help.", "From then on, {h} always asked for help when something was too hard.", "{h} knew now that things are easier with a friend.", "When we help each other, big troubles become small."),
    "honest": ("From then on, {h} always told the truth.", "{h} learned that the truth is best, even when it is hard to say.", "Telling the truth had made {h.s} heart light again.", "{h} never told a lie like that again."),
    "share": ("{h} learned that sharing makes everything more fun.", "From that day on, {h} loved to share.", "Things are twice as nice when we share them.", "{h} knew now that a thing that is shared is never lost."),
    "brave": ("{h} learned that being brave means trying even when you are scared.", "From that day on, {h} was not so afraid anymore.", "{h} had found out how brave {h.he} could be.", "Even small ones can be very brave."),
    "patient": ("{h} learned that good things take time.", "From then on, {h} was a little more patient.", "Some things cannot be hurried, and that is fine.", "Step by step, {h} had got there."),
    "practice": ("{h} learned that you get better when you keep trying.", "From that day on, {h} never said \"I can't\" so quickly.", "All that practice had been worth it.", "{h} knew now that every master was once a beginner."),
    "kind": ("{h} learned that a kind deed always comes back.", "Being kind had made {h} happy too.", "A little kindness can change a whole day.", "From that day on, {h} looked out for others who needed help."),
    "friend": ("From that day on, {h} and {f} were the best of friends.", "{h} learned that a friend can be found anywhere.", "{h} and {f} played together every day after that.", "A good friend is worth more than gold."),
    "careful": ("From then on, {h} was much more careful.", "{h} learned to take good care of {h.his} things.", "After that, {h} always looked twice.", "{h} promised to be more careful, and {h.he} kept {h.his} word."),
    "listen": ("From then on, {h} listened when someone gave {h.him} good advice.", "{h} learned that it is wise to listen.", "Next time, {h} would listen first."),
    "self": ("{h} learned that it is good to be just who you are.", "{h} did not want to be anyone else anymore.", "From that day on, {h} was proud to be {h.self}."),
}


def close(s, moral=None, p=0.55):
    """Ends the story: perhaps a moral, the evening, a last line."""
    s.par(0.5)
    told = False
    if moral and s.rand() < p:
        s(*MORALS[moral])
        told = True
    r = s.rand()
    if s.long:
        pass
    elif r < 0.4 * (0.5 + s.rich) or (not told and r < 0.35):
        s(*(AWAY + HOME if "p" in s.v and "home" not in s.v else HOME))
        told = True
    if s.rand() < (0.3 if told else 0.85):
        s(*(TIMELESS if s.long else LAST))
    return s
