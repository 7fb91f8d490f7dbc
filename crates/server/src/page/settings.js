// The settings' dialog, the theme, and what of the settings goes into a request.

import { byId } from "./dom.js";
import { set, settings } from "./store.js";

const NAMES = ["system", "temperature", "top_p", "max_tokens", "seed", "key", "theme"];
const dialog = byId("settings");

/** The fields of a request that are set; what is empty is left to the server. */
export function sampling() {
  const fields = { temperature: "temperature", top_p: "top_p", max_completion_tokens: "max_tokens", seed: "seed" };
  const chosen = Object.entries(fields).filter(([, name]) => settings[name] !== "");
  return Object.fromEntries(chosen.map(([field, name]) => [field, Number(settings[name])]));
}

/** Opens the dialog, at a setting if one is named. */
export function open(name) {
  for (const each of NAMES) byId(each).value = settings[each];
  dialog.showModal();
  if (name) byId(name).focus();
}

/** Wires the dialog; `keyChanged` is called when it closes with another key. */
export function setUp(keyChanged) {
  let key = settings.key;
  for (const name of NAMES) {
    byId(name).addEventListener("change", ({ target }) => {
      if (!target.reportValidity()) return;
      set(name, name === "key" ? target.value.trim() : target.value);
      if (name === "theme") applyTheme();
    });
  }
  byId("open-settings").addEventListener("click", () => open());
  byId("close-settings").addEventListener("click", () => dialog.close());
  // Enter closes: there is nothing to send.
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    event.target.dispatchEvent(new Event("change"));
    if (event.target.validity.valid) dialog.close();
  });
  dialog.addEventListener("close", () => {
    if (settings.key !== key) keyChanged();
    key = settings.key;
  });
  byId("switch-theme").addEventListener("click", () => {
    set("theme", isDark() ? "light" : "dark");
    applyTheme();
  });
}

function isDark() {
  return settings.theme ? settings.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme() {
  if (settings.theme) document.documentElement.dataset.theme = settings.theme;
  else delete document.documentElement.dataset.theme;
}
