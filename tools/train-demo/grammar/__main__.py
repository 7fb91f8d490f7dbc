"""Prints stories: `python3 -m grammar --seed 1 --count 1000`."""
import argparse
import sys

from .generate import stories
from .plots import PLOTS


def main():
    parser = argparse.ArgumentParser(prog="grammar", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="first seed (default 1)")
    parser.add_argument("--count", type=int, default=10, help="number of stories (default 10)")
    parser.add_argument("--plot", choices=sorted(PLOTS), help="only this plot")
    args = parser.parse_args()
    for sample in stories(args.seed, args.count, args.plot):
        if sample["prompt"]:
            sys.stdout.write(f"[{sample['prompt']}]\n")
        sys.stdout.write(sample["story"] + "\n<|endoftext|>\n")


if __name__ == "__main__":
    main()
