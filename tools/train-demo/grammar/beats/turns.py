"""Turns: tries and failures, ideas, comfort, asking for help and thanks."""

IDEA = (
    "Then {x} had an idea.", "Suddenly, {x} had a clever idea.", "{x} thought and thought. Then {x.his} eyes lit up.", "All at once, {x} knew what to do.",
    "Just then, an idea popped into {x.s} head.", "{x.e} scratched {x.his} head, and then {x.he} smiled. There was a way!", "But {x} did not give up.",
    "Then {x} remembered something.", "{x.e} sat very still and thought about it.",
)
NEXT = ("Next, ", "Then ", "After that, ", "So ", "Then ", "A moment later, ")
FIRST = ("First, ", "At first, ", "", "So ", "", "To begin with, ")
STILL = ("{h} did not give up.", "Still, {h} wanted to try again.", "{h.e} took a deep breath and tried again.", "There had to be another way.", "{h.e} shook {h.his} head. What else could {h.he} do?")
COMFORT = (
    "Do not be sad, {h}. We will find a way.", "Don't worry. I will help you.", "Dear {h}, everything will be all right.", "Come here and dry your tears. Two heads are better than one.",
    "I know how you feel. Let us think together.", "Cheer up! We can do this together.", "It is all right. Everyone has bad days.", "Do not give up now. I am with you.",
    "Let us take a deep breath first.", "I am here, and I will stay with you.",
)
SEES = (
    "{x} saw {h.s} face and came closer.", "{x} put {x.his} {x.hand} on {h.s} shoulder.", "Just then, {x} came by.", "Soon {x} came along and saw what was wrong.",
    "{x} heard about it and came at once.", "At that moment, {x} walked up.", "Luckily, {x} was near.", "{x} noticed that something was wrong.",
)
WHAT = ("What is the matter, {h}?", "What is wrong?", "Why do you look so sad?", "Can I help you, {h}?", "What happened?", "Oh dear, what is it?", "You look troubled. What is wrong?", "Is something the matter?")
TELL = ("{h} told {x.him} everything.", "{h} told {x.him} the whole story.", "{h} explained what had happened.", "{h} took a deep breath and told {x.him} all about it.", "So {h} told {x.him} what had happened, from start to end.")
THANKS = (
    "Thank you, {x.name}! You are so kind.", "Thank you so much!", "I could not have done it without you.", "Thank you for helping me, {x.name}.", "You are the best, {x.name}!", "Thank you! I will never forget this.",
    "That was so kind of you, {x.name}.", "How can I ever thank you?",
)
REPLY = ("That is what friends are for.", "I was glad to help.", "You would do the same for me.", "You are welcome, {h.name}.", "It was fun to do it together.", "You did most of it, {h.name}.", "Any time.", "Your smile is thanks enough.")
ASIDES = (
    "A bird sang in a tree nearby.", "A ladybird landed on {h.s} sleeve and flew away again.", "Somewhere a dog barked.", "A soft wind was blowing.", "The clouds looked like sheep.",
    "A sparrow watched from the fence.", "It was very quiet for a moment.", "{h.s} tummy rumbled a little.", "A cricket chirped in the grass.", "The church bell rang in the distance.",
    "A yellow leaf floated down.", "The sun peeped out from behind a cloud.",
)


def idea(s, who="h", p=0.8):
    if s.rand() < p:
        s.v["x"] = s.v[who]
        s(*IDEA)
    return s


def tries(s, pairs, most=3):
    """Some of the (attempt, failure) pairs, in random order, linked."""
    count = min(len(pairs), most, 1 + int(s.rand() * (1 + 1.6 * s.rich)))
    left = list(pairs)
    for i in range(count):
        attempt, failure = left.pop(int(s.rand() * len(left)))
        lead = s.pick(FIRST) if i == 0 and count > 1 else s.pick(NEXT) if i else ""
        s(lead + attempt)
        s(failure)
        if i + 1 < count and s.rand() < 0.3:
            s(*STILL)
    return s


def comfort(s, who="f", p=0.7):
    if s.rand() < p:
        s.v["x"] = s.v[who]
        s.q(who, *COMFORT)
    return s


def ask_help(s, who="g", known=False):
    """The helper comes, asks and hears what happened."""
    s.v["x"] = s.v[who]
    s.par(0.5)
    if not known:
        s(*SEES)
    s.q(who, *WHAT)
    s(*TELL)
    return s


def thanks(s, who="f", p=0.75):
    s.v["x"] = s.v[who]
    if s.rand() < p:
        s.q("h", *THANKS)
        if s.rand() < 0.5:
            s.q(who, *REPLY)
    return s


def aside(s, p=0.25):
    if s.rand() < p * (0.3 + s.rich):
        s(*ASIDES)
    return s
