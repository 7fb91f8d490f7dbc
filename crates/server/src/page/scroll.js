// Stays at the end of the conversation while the reader is there, and leaves the page alone when they have scrolled up.

import { byId } from "./dom.js";

const NEAR = 48;
const scroll = byId("scroll");
const toEnd = byId("to-end");
let [following, before] = [true, 0];

/** Scrolls to the end if that's where the reader is; `always` also if not. */
export function follow(always = false) {
  following ||= always;
  if (following) scroll.scrollTop = scroll.scrollHeight;
  toEnd.hidden = following;
}

export function setUp() {
  // Text that comes between a scroll and its event moves the end away: only a move upwards is the reader's.
  scroll.addEventListener("scroll", () => {
    const { scrollTop, scrollHeight, clientHeight } = scroll;
    const left = scrollHeight - scrollTop - clientHeight;
    if (scrollTop < before && left > 1) following = false;
    else if (scrollTop > before && left < NEAR) following = true;
    before = scrollTop;
    toEnd.hidden = following;
  }, { passive: true });
  // A wheel moves in small steps: the first must not be undone by text that comes before its event.
  scroll.addEventListener("wheel", ({ deltaY }) => (following &&= deltaY >= 0), { passive: true });
  // Messages that come into sight take their true height, and a window its new one.
  new ResizeObserver(() => follow()).observe(byId("log"));
  new ResizeObserver(() => follow()).observe(scroll);
  toEnd.addEventListener("click", () => {
    follow(true);
    byId("prompt").focus();
  });
}
