// Markdown while it is being written. Blocks that can't change any more are drawn once; only the last one is drawn again, at most once
// a frame, and open code only grows. So the cost of a token doesn't grow with the answer.

import { el, put } from "./dom.js";
import { draw, parse } from "./markdown.js";

// Characters of a block above which it is drawn four times a second and not each frame.
const LONG = 10000;

/** Calls `f` at the next frame, or later if `slowly`; gives what calls it off. */
function soon(slowly, f) {
  if (slowly) {
    const timer = setTimeout(f, 250);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(f);
  return () => cancelAnimationFrame(frame);
}

export class MarkdownStream {
  /** Writes to `home`; `drawn` is called after each change. */
  constructor(home, drawn = () => {}) {
    this.home = home;
    this.drawn = drawn;
    this.rest = "";
    this.tail = el("div", { class: "tail" });
    this.growing = null;
    this.cancel = null;
    home.append(this.tail);
  }

  push(text) {
    this.rest += text;
    this.cancel ??= soon(this.rest.length > LONG && !this.growing, () => this.draw());
  }

  /** Draws what is left. */
  end() {
    this.cancel?.();
    this.tail.remove();
    put(this.home, parse(this.rest.split(/\r?\n/)).map(draw));
    this.drawn();
  }

  draw() {
    this.cancel = null;
    this.settle();
    const lines = this.rest.split(/\r?\n/);
    const blocks = parse(lines);
    const [only] = blocks;
    if (blocks.length === 1 && only.kind === "fence" && only.open) this.grow(only, lines.at(-1));
    else {
      this.growing = null;
      this.tail.replaceChildren();
      put(this.tail, blocks.map(draw));
    }
    this.drawn();
  }

  // The line that is not complete can't end a block: `-` may become a list, a rule or a number.
  settle() {
    const whole = this.rest.lastIndexOf("\n");
    if (whole < 0) return;
    const lines = this.rest.slice(0, whole).split("\n");
    const blocks = parse(lines.map((line) => line.replace(/\r$/, "")));
    if (blocks.length < 2) return;
    for (const block of blocks.slice(0, -1)) this.tail.before(draw(block));
    this.rest = lines.slice(blocks.at(-1).from).join("\n") + this.rest.slice(whole);
    this.growing = null;
  }

  grow(block, last) {
    if (!this.growing) {
      const drawn = draw({ ...block, text: "" });
      this.growing = drawn.querySelector("code").appendChild(document.createTextNode(""));
      this.tail.replaceChildren(drawn);
    }
    // What may be the closing fence is not shown before it turns out to be none.
    const text = /^ *[`~]+$/.test(last) ? block.text.slice(0, -last.trim().length) : block.text;
    if (text.length > this.growing.length) this.growing.appendData(text.slice(this.growing.length));
  }
}
