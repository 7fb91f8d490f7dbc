"""Word pools for `{#name}` slots: words of one class that fit one place."""

_TEXT = """
happy: happy|glad|cheerful|delighted|full of joy|pleased|as happy as a lark
sad: sad|unhappy|gloomy|miserable|close to tears|heavy-hearted
worried: worried|troubled|uneasy|anxious|nervous|unsure
scared: scared|frightened|afraid|full of fear
tired: tired|sleepy|worn out|weary|out of breath
smiled: smiled|grinned|beamed|gave a big smile|smiled from ear to ear
ran: ran|hurried|raced|rushed|dashed|trotted
walked: walked|strolled|wandered|went|hiked|skipped
looked: looked|searched|peeked|peered
good: kind|good|true|fine|wonderful
nice: lovely|beautiful|splendid|wonderful|pretty|fine
big: big|huge|large|enormous|great
small: small|tiny|little
loud: loud|noisy
yum: delicious|tasty|yummy|wonderful
fruit: apples|pears|plums|cherries|grapes|peaches|berries
veg: carrots|peas|beans|pumpkins|radishes|turnips|cabbages|tomatoes|onions|potatoes
flower: daisies|tulips|poppies|violets|roses|sunflowers|bluebells|marigolds|daffodils|lilies
snack: a slice of bread with honey|a warm bun|a bowl of berries|a piece of apple pie|a plate of pancakes|a cup of cocoa|a bowl of hot soup|warm milk and cookies|cheese and crackers|toast with plum jam
snacks: sandwiches|cookies|apples|cheese|plums|boiled eggs|buns|nuts|muffins|strawberries|crackers|grapes
treasure: shells|feathers|pebbles|buttons|acorns|pine cones|stamps|pressed flowers|old coins|bottle caps|smooth stones|coloured leaves
quickly: quickly|right away|at once|in a hurry|as fast as {h.he} could
softly: softly|gently|quietly|kindly|warmly
song: a happy song|an old song|a silly song|a marching song|a soft tune|a song about the sea
noise: Crash!|Bang!|Thump!|Clatter!
creak: Creak!|Rustle!|Tap, tap!|Scratch!|Swish!
bigger: brave|strong|clever|tall
game: hide-and-seek|tag|catch|hopscotch|leapfrog|skittles
simile_fast: like the wind|like an arrow|as fast as a hare|like a rolling ball
simile_quiet: as quiet as a mouse|as still as a stone|without a sound
star: stars|fireflies|lanterns|candles
cloth: blanket|shawl|towel|coat
"""
POOLS = {}
for _line in _TEXT.strip().splitlines():
    _name, _, _words = _line.partition(": ")
    POOLS[_name] = tuple(_words.split("|"))
POOLS["quickly"] = ("quickly", "right away", "at once", "in a hurry")

HOBBIES = """to paint pictures|to climb things|to sing songs|to collect {#treasure}|to tell jokes|to watch the clouds|to build towers|to count the stars
to listen to stories|to ask questions|to bake cookies|to hum little tunes|to jump in puddles|to draw maps|to dance in the rain|to roll down hills
to look for {#treasure}|to make paper boats|to plant seeds|to whistle|to play {#game}|to tell stories|to watch the birds|to help in the kitchen
to invent new games|to read by the window|to feed the birds|to splash in the stream|to follow tiny tracks|to make crowns of {#flower}"""
HOBBIES = tuple(HOBBIES.replace("\n", "|").split("|"))
