"""The story grammar: what every story of the corpus keeps."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grammar import stories  # noqa: E402
from grammar.generate import tell  # noqa: E402
from grammar.plots import PLOTS  # noqa: E402
from grammar.story import vowel_sound  # noqa: E402
import random  # noqa: E402

COUNT = 10_000
SAMPLES = list(stories(7, COUNT))
BODIES = [s["story"] for s in SAMPLES]


def sentences(text):
    return [t for p in text.split("\n\n") for t in re.split(r'(?<=[.!?])"?\s+', p) if t]


def without_title(text):
    first, _, rest = text.partition("\n\n")
    return rest if rest and first[-1] not in '.!?"' else text


class Corpus(unittest.TestCase):
    def test_the_same_seed_gives_the_same_stories(self):
        self.assertEqual(SAMPLES[:200], list(stories(7, 200)))
        self.assertNotEqual(SAMPLES[:20], list(stories(8, 20)))

    def test_every_plot_is_told(self):
        for name, plot in PLOTS.items():
            told = sum(tell(random.Random(i), plot)[1] is not None for i in range(40))
            self.assertGreater(told, 20, name)
        self.assertGreaterEqual(len(PLOTS), 40)

    def test_texts_are_distinct_and_the_vocabulary_is_large(self):
        distinct = len(set(BODIES))
        lines = {t for b in BODIES for t in sentences(b)}
        words = {w.lower() for b in BODIES for w in re.findall(r"[A-Za-z']+", b)}
        lengths = [len(b.split()) for b in BODIES]
        print(f"\n{COUNT} stories, {len(PLOTS)} plots: {distinct} distinct, {len(lines)} distinct sentences, {len(words)} words, "
              f"{min(lengths)} to {max(lengths)} words long, {sum(lengths) / COUNT:.0f} on average, "
              f"{sum(bool(s['prompt']) for s in SAMPLES)} with a request, {sum('Once upon a time' in b for b in BODIES)} 'Once upon a time'")
        self.assertGreater(distinct, 0.999 * COUNT)
        self.assertGreater(len(lines), 60_000)
        self.assertGreater(len(words), 1_500)
        self.assertGreaterEqual(min(lengths), 65)
        self.assertLessEqual(max(lengths), 370)

    def test_requests_name_the_hero(self):
        for s in SAMPLES:
            named = s["prompt"] and re.search(r"named (\w+)", s["prompt"])
            if named:
                self.assertIn(named.group(1), s["story"])


class Form(unittest.TestCase):
    def each(self, check):
        for body in BODIES:
            check(without_title(body), body)

    def test_no_slot_and_no_template_mark_is_left(self):
        self.each(lambda t, b: self.assertNotRegex(b, r"[{}\[\]|#_]"))

    def test_blanks_and_punctuation_are_clean(self):
        self.each(lambda t, b: self.assertNotRegex(b, r"  | \n|\n\n\n| [.,!?]|[.,!?][.,!?]|,\"? [.]|\bthe the\b|\ba a\b|\bsoon soon\b"))

    def test_quotes_are_balanced_in_every_paragraph(self):
        def check(text, body):
            for p in text.split("\n\n"):
                self.assertEqual(p.count('"') % 2, 0, body)
        self.each(check)

    def test_sentences_begin_with_capitals_and_paragraphs_end(self):
        def check(text, body):
            for p in text.split("\n\n"):
                self.assertRegex(p, r'^"?[A-Z]', body)
                self.assertRegex(p, r'[.!?]"?$', body)
                self.assertNotRegex(p, r'[.] "?[a-z]', body)
                self.assertNotRegex(p, r'[.,!?]" (Said|Asked|Called|Cried|Wondered) ', body)
        self.each(check)

    def test_articles_fit_the_next_word(self):
        def check(text, body):
            for article, word in re.findall(r"\b([Aa]n?) ([A-Za-z]+)", text):
                self.assertEqual(article.lower() == "an", vowel_sound(word), f"{article} {word}: {body}")
        self.each(check)

    def test_no_sentence_comes_twice(self):
        def check(text, body):
            long = [t for t in sentences(text) if t.count(" ") > 3]
            self.assertEqual(len(long), len(set(long)), body)
        self.each(check)


class Pronouns(unittest.TestCase):
    def test_a_lone_hero_is_never_called_by_the_other_pronoun(self):
        for name, plot in PLOTS.items():
            for i in range(30):
                s, text = tell(random.Random(i), plot)
                if text is None or len({c.she for c in s.cast}) != 1:
                    continue
                narration = re.sub(r'"[^"]*"', "", text)
                wrong = r"\b(he|him|himself)\b" if s.v["h"].she else r"\b(she|herself)\b"
                if re.search("shopkeeper|mother|monster|giant|beggar|Grand|Mama|Papa|dentist|bird|hen", narration):
                    continue
                self.assertNotRegex(narration, wrong, f"{name}: {text}")

    def test_a_possessive_follows_the_subject_it_belongs_to(self):
        for name, plot in PLOTS.items():
            for i in range(30):
                s, text = tell(random.Random(i), plot)
                if text is None:
                    continue
                for c in s.cast:
                    other = "his" if c.she else "her"
                    self.assertNotRegex(text, rf"\b{re.escape(c.name)} (hung|bit|shook|shut|wiped|held) {other} (head|lip|eyes|breath)\b", name)


if __name__ == "__main__":
    unittest.main()
