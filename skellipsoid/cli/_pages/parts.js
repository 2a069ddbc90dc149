"use strict";
// What all pages share. Texts of users are hostile: they are set as text alone, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);

// An element with attributes, functions for events, and children; strings become text.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A text with its controls, turns of direction and halves of characters written out.
function shown(text) {
  return String(text).replace(/[\p{Cc}\p{Cs}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu, (letter) =>
    letter === "\n" || letter === "\t" ? letter : "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"));
}

// A text of a user, whose direction is its own.
const words = (text, attributes = {}) => make("span", { dir: "auto", ...attributes }, shown(text));

const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// Names are nearly equal that differ in case, white space or signs.
const bare = (name) => name.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

// So are those of which one has a letter more, or another one, or two changed places.
function isLike(one, other) {
  const [a, b] = [bare(one), bare(other)];
  if (a === b) return true;
  if (Math.min(a.length, b.length) < 4 || Math.abs(a.length - b.length) > 1) return false;
  let [start, end] = [0, 0];
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  return Math.max(x.length, y.length) <= 1 || (x.length === 2 && x === [...y].reverse().join(""));
}

// One JSON object a line, in ASCII, so that nothing on the way changes a letter.
function download(name, records) {
  const escape = (letter) => "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0");
  const lines = records.map((record) => JSON.stringify(record).replace(/[\u007f-\uffff]/g, escape) + "\n");
  const link = make("a", { href: URL.createObjectURL(new Blob(lines, { type: "application/jsonl" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What was done so far stays in the browser, under the id of this page.
const draft = {
  key: `skellipsoid-${data.id}`,
  works: true,
  read() {
    try {
      localStorage.setItem(this.key + "-test", "1");
      localStorage.removeItem(this.key + "-test");
      return JSON.parse(localStorage.getItem(this.key));
    } catch {
      this.works = false;
      return null;
    }
  },
  write(value) {
    try {
      localStorage.setItem(this.key, JSON.stringify(value));
      this.works = true;
    } catch {
      this.works = false;
    }
  },
  forget() {
    try { localStorage.removeItem(this.key); } catch { this.works = false; }
  },
  // Says where the work is.
  note() {
    return this.works
      ? make("p", { class: "quiet" }, "What you do stays in this browser until you save it.")
      : make("p", { class: "warn", role: "alert" },
        "This browser keeps no draft of this page: save before you close it.");
  },
};

// A button that reads a file that the page saved.
function reader(label, take) {
  const input = make("input", { type: "file", accept: ".jsonl", hidden: true, "aria-label": label, change() {
    if (!input.files.length) return;
    input.files[0].text().then((text) => {
      const records = [];
      for (const line of text.split("\n")) {
        if (!line.trim()) continue;
        try { records.push(JSON.parse(line)); } catch { return take(null); }
      }
      take(records);
      input.value = "";
    });
  } });
  return make("span", { class: "file" }, make("button", { type: "button", click: () => input.click() }, label), input);
}
