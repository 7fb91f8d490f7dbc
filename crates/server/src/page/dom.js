// Elements without markup strings: text stays text, whatever it holds.

/** Appends nodes, texts, and arrays of them; null and false are left out. One by one: a model's text can be more than a call takes. */
export function put(home, ...children) {
  for (const child of children.flat()) if (child != null && child !== false) home.append(child);
  return home;
}

/** An element with attributes, listeners (`onclick: f`) and children as `put` takes them. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  return put(made, ...children);
}

export const byId = (id) => document.getElementById(id);

/** A button whose label is its name. */
export const button = (label, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, label);

/** Tells those who don't see the page. */
export function announce(text) {
  byId("status").textContent = text;
}

/** A button that copies what `text()` gives, and says so on itself. */
export function copyButton(text, label = "Copy", name = label) {
  const made = button(label, async () => {
    const done = (await copy(text())) ? "Copied" : "Copying failed";
    made.textContent = done;
    announce(done);
    setTimeout(() => (made.textContent = label), 1500);
  }, { "aria-label": name, class: "quiet" });
  return made;
}

// The clipboard's own interface exists for secure origins alone, and a server in the local network is none.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    return done;
  }
}
