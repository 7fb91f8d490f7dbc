// The line of counts below the message box, asked for each second while an answer is being written.

import { stats } from "./api.js";
import { byId } from "./dom.js";
import { settings } from "./store.js";

const EVERY = 1000;
let timer = null;

const gib = (bytes) => (bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 2 : 1);
const known = (value) => typeof value === "number" && Number.isFinite(value);

function words(counts) {
  const parts = [];
  if (known(counts.tokens_per_second)) parts.push(`${counts.tokens_per_second.toFixed(1)} tokens/s`);
  if (known(counts.expert_hit_rate)) parts.push(`${(100 * counts.expert_hit_rate).toFixed(0)} % expert cache hits`);
  if (known(counts.memory_bytes)) {
    const budget = known(counts.budget_bytes) ? ` of ${gib(counts.budget_bytes)}` : "";
    parts.push(`${gib(counts.memory_bytes)}${budget} GiB memory`);
  }
  if (counts.queued > 0) parts.push(`${counts.queued} waiting`);
  return parts.join("  ·  ");
}

/** Asks once and shows it. */
export async function measure() {
  const counts = await stats(settings.key);
  if (counts) byId("meters").textContent = words(counts);
  return counts !== null;
}

/** Asks each second until `stop`, or until the server has no counts to tell. */
export function start() {
  if (timer) return;
  const next = async () => {
    if ((await measure()) && timer) timer = setTimeout(next, EVERY);
  };
  timer = setTimeout(next, EVERY / 4);
}

export function stop() {
  if (timer) measure();
  clearTimeout(timer);
  timer = null;
}
