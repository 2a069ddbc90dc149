// The page of discovered groups: each with all of its messages, to be named.
const groups = data.groups;
let work = groups.map(() => ({ label: "", dropped: [] }));
let isSaved = true;
const storage = make("div", {});
const count = make("span", {});
const told = make("div", { role: "status" });
const notes = [];

const stays = (i) => groups[i].members.length - work[i].dropped.length;

function keep() {
  isSaved = false;
  told.replaceChildren();
  draft.write(work);
  storage.replaceChildren(draft.note());
  say();
}

// What a name means, for each group: names of other groups join them.
function say() {
  groups.forEach((group, i) => {
    const name = work[i].label.trim();
    const others = groups.map((_, k) => k).filter((k) => k !== i && name && work[k].label.trim() === name);
    const near = [...data.classes, ...work.map((each) => each.label.trim())].find((other) =>
      other && other !== name && name && isLike(other, name));
    notes[i].className = near ? "warn" : "quiet";
    if (!name) notes[i].textContent = "Without a name it is left out.";
    else if (name === data.open) notes[i].textContent = `Of no class: ${counted(stays(i), "message")} to be open.`;
    else if (data.classes.includes(name)) notes[i].textContent = `${counted(stays(i), "message")} more of a class of the model.`;
    else if (near) notes[i].textContent = `Nearly the name ${shown(near)}: write them alike, or choose another.`;
    else if (others.length) notes[i].textContent = `One class with group ${others.map((k) => k + 1).join(", ")}.`;
    else notes[i].textContent = `A new class of ${counted(stays(i), "message")}.`;
  });
  const named = work.filter((each) => each.label.trim()).length;
  count.textContent = `${named} of ${groups.length} named`;
}

function section(group, i) {
  const name = make("input", { type: "text", list: "names", "aria-label": `name of group ${i + 1}`,
    autocomplete: "off", spellcheck: "false", placeholder: group.name, value: work[i].label, input() {
      work[i].label = name.value;
      keep();
    } });
  const set = (value) => () => {
    name.value = work[i].label = value;
    keep();
  };
  notes[i] = make("p", { role: "status" });
  const items = group.members.map((member, k) => {
    const box = make("input", { type: "checkbox", checked: !work[i].dropped.includes(k), change() {
      work[i].dropped = work[i].dropped.filter((each) => each !== k).concat(box.checked ? [] : [k]);
      keep();
    } });
    return make("li", {}, make("label", {}, box, " ", words(member.text),
      member.copies > 1 ? make("span", { class: "quiet" }, ` (${member.copies} times)`) : null));
  });
  const n = group.rows;
  return make("fieldset", {},
    make("legend", {}, `Group ${i + 1}: `, words(group.name)),
    make("p", { class: "quiet" }, `${counted(n, "message")}, ${group.members.length} different`,
      group.part_of ? make("span", {}, "; rather of the class ", words(group.part_of)) : null,
      group.mixed ? "; mixed: they have little in common" : null),
    make("p", { class: "row" }, name,
      make("button", { type: "button", click: set(group.name) }, "Take ", words(group.name)),
      group.part_of ? make("button", { type: "button", click: set(group.part_of) }, "Is ", words(group.part_of)) : null,
      make("button", { type: "button", click: set(data.open) }, `Is no class of the model (${data.open})`),
      make("button", { type: "button", click: set("") }, "Leave out")),
    notes[i],
    make("ul", { class: "members" }, ...items.slice(0, 3)),
    items.length > 3 ? make("details", {}, make("summary", {}, `${items.length - 3} more`),
      make("ul", { class: "members" }, ...items.slice(3))) : null);
}

function save() {
  const records = [];
  groups.forEach((group, i) => {
    const label = work[i].label.trim();
    if (!label) return;
    group.members.forEach((member, k) => {
      if (!work[i].dropped.includes(k)) records.push({ group: group.group, proposed_name: group.name, label,
        text: member.text, score: member.score, run: data.run });
    });
  });
  if (!records.length) return told.replaceChildren(make("p", {}, "No group has a name yet."));
  download(data.saves, records);
  isSaved = true;
  told.replaceChildren(make("p", {}, `${data.saves} holds ${counted(records.length, "message")}. Next:`),
    make("p", {}, make("code", {}, shown(data.next))));
}

function readBack(records) {
  const places = new Map(groups.map((group, i) => [String(group.group), i]));
  const mine = (records || []).filter((record) => record && record.run === data.run && places.has(String(record.group)));
  if (!mine.length) return told.replaceChildren(make("p", { class: "warn" }, "The file holds no group of this page."));
  const kept = new Map();
  for (const record of mine) {
    const i = places.get(String(record.group));
    work[i] = { label: String(record.label), dropped: [] };
    kept.set(i, (kept.get(i) || new Set()).add(record.text));
  }
  for (const [i, texts] of kept) {
    groups[i].members.forEach((member, k) => { if (!texts.has(member.text)) work[i].dropped.push(k); });
  }
  keep();
  draw();
  told.replaceChildren(make("p", {}, `${counted(kept.size, "group")} read.`));
}

const main = make("main", {});
function draw() {
  main.replaceChildren(...groups.map(section));
  say();
}
window.addEventListener("beforeunload", (event) => {
  if (!isSaved && !draft.works) event.preventDefault();
});

const before = draft.read();
if (Array.isArray(before) && before.length === groups.length) work = before;
document.body.prepend(
  make("header", {},
    make("h1", {}, `${counted(groups.length, "group")} of open messages`),
    make("p", { class: "quiet" }, data.notice),
    storage,
    make("p", { class: "row" }, count, make("button", { type: "button", class: "main", click: save }, "Save"),
      reader("Open saved names", readBack)),
    told),
  make("datalist", { id: "names" }, ...data.classes.map((name) => make("option", { value: name }))),
  main);
storage.replaceChildren(draft.note());
draw();
