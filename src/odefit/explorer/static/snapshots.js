// Snapshots: values that were kept, with a name, and curves that can be drawn beside others.

/** The list of snapshots, and the form that keeps one. */
export class Snapshots {
  constructor(state, changed) {
    this.state = state;
    this.changed = changed;
    this.list = document.getElementById("snapshots");
    this.count = 0;
    const field = document.getElementById("snapshot-name");
    field.placeholder = "snapshot 1";
    document.getElementById("keep").addEventListener("submit", (event) => {
      event.preventDefault();
      this.keep(field.value.trim() || field.placeholder, state.values);
      field.value = "";
      field.placeholder = `snapshot ${this.count + 1}`;
    });
    this.update();
  }

  /** Keep values under a name; those of a name that there is already are replaced. */
  keep(name, values, more = {}) {
    this.count += 1;
    const made = { name, values: [...values], shown: true, curves: new Map(), ...more };
    const place = this.state.snapshots.findIndex((s) => s.name === name && !s.saved);
    if (place >= 0) this.state.snapshots[place] = made;
    else this.state.snapshots.push(made);
    this.update();
    this.changed();
  }

  update() {
    document.getElementById("snapshot-block").open ||= this.state.snapshots.length > 0;
    this.list.replaceChildren(...this.state.snapshots.map((snapshot, i) => this.item(snapshot, i)));
  }

  item(snapshot, i) {
    const item = document.createElement("li");
    const label = document.createElement("label");
    label.className = "inline tick";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = snapshot.shown;
    box.addEventListener("change", () => {
      snapshot.shown = box.checked;
      this.changed();
    });
    const key = document.createElement("span");
    key.className = `key other-${i % 5}`;
    label.append(box, key, snapshot.name);
    label.title = snapshot.name;
    const take = button("Take", `take the values of ${snapshot.name}`, () => {
      this.state.set(snapshot.values);
    });
    const remove = button("Remove", `remove ${snapshot.name}`, () => {
      this.state.snapshots = this.state.snapshots.filter((s) => s !== snapshot);
      this.update();
      this.changed();
      document.getElementById("snapshot-name").focus();
    });
    item.append(label, take, remove);
    return item;
  }
}

function button(text, label, act) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text, className: "quiet" });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}
