// Used by all views: texts, announcements, the stream of updates, tables, tabs and dialogs.

export const $ = (id) => document.getElementById(id);

export function setText(id, text) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
}

export function make(tag, className, content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (content !== undefined) element.append(content);
  return element;
}

// A text of unknown origin in at most two lines; the whole text is its title.
export function clamped(text) {
  const element = make("bdi", "clamped", text);
  if (text.length > 60) element.title = text;
  return element;
}

// The note of a pull; a long one is shown as a whole on demand.
export function noteCell(text) {
  if (!text) return "–";
  if (text.length <= 120) return clamped(text);
  const box = make("details", "note-text");
  box.append(make("summary", "", clamped(text)), make("p", "whole-label", text));
  return box;
}

// A message for screen readers, skipped if the last one was less than `seconds` ago.
let lastAnnounced = -Infinity;
export function announce(message, seconds = 0) {
  const now = performance.now();
  if (now - lastAnnounced < 1000 * seconds) return;
  lastAnnounced = now;
  setText("announce", message);
}

// A box can be reached with the keyboard only while its content has to be scrolled.
const scrolling = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  const box = target.closest(".scroll");
  if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) { box.tabIndex = 0; box.role = "group"; box.ariaLabel = box.querySelector("caption").textContent; }
  else { box.removeAttribute("tabindex"); box.removeAttribute("role"); box.removeAttribute("aria-label"); }
}));
export function observeScrolling(root = document) {
  root.querySelectorAll(".scroll, .scroll > table").forEach((element) => scrolling.observe(element));
}
observeScrolling();

export function listen(address, update) {
  const stream = new EventSource(address);
  const connection = $("connection");
  stream.onmessage = (event) => update(JSON.parse(event.data));
  stream.onopen = () => { connection.textContent = ""; connection.className = ""; };
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED && $("list").hidden) {
      $("run").hidden = $("study").hidden = true; $("missing").hidden = false;
      return;
    }
    connection.textContent = "connection lost: showing the last known state"; connection.className = "broken";
  };
}

// Fills a table and reuses its rows and cells, so that nothing jumps. Columns that are hidden on a phone have the
// class "wide" in the table's head, numbers the class "number".
export function fill(id, rows) {
  const table = typeof id === "string" ? $(id) : id;
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, index) => {
    const line = body.rows[index] || body.insertRow();
    if (line.className !== (row.className || "")) line.className = row.className || "";
    row.cells.forEach((content, column) => {
      let cell = line.cells[column];
      if (!cell) {
        const isHeader = (row.header ?? 0) === column;
        cell = make(isHeader ? "th" : "td", heads[column].className);
        if (isHeader) { cell.scope = "row"; cell.classList.add("label"); }
        line.append(cell);
      }
      const className = row.classNames && row.classNames[column];
      if (className !== undefined) cell.className = className;
      if (typeof content === "string") { if (cell.textContent !== content || cell.firstElementChild) cell.textContent = content; }
      else cell.replaceChildren(content);
    });
  });
}

// Facts as a list of names and values; empty ones are left out.
export function fillFacts(id, facts) {
  $(id).replaceChildren(...facts.filter(([, value]) => value && value !== "–").map(([name, value]) => {
    const item = make("div");
    item.append(make("dt", "", name), make("dd", "", value));
    return item;
  }));
}

// Shows the view that the address names after #, by default the first one; calls `shown` when that changes.
export function tabs(name, shown = () => {}) {
  const links = [...document.querySelectorAll(`[data-views="${name}"] a`)], names = links.map((link) => link.hash.slice(1));
  const show = () => {
    const current = names.includes(location.hash.slice(1)) ? location.hash.slice(1) : names[0];
    links.forEach((link, index) => { if (names[index] === current) link.ariaCurrent = "page"; else link.removeAttribute("aria-current"); });
    document.querySelectorAll(`#${name} [data-view]`).forEach((part) => { part.hidden = part.dataset.view !== current; });
    shown(current);
  };
  addEventListener("hashchange", show);
  show();
}

// Opens a dialog that asks an address for its content again and again, until it is closed; `isLive` ends the asking.
export function showDialog(id, load, isLive) {
  const dialog = $(id);
  let timer = null;
  const ask = async () => {
    clearTimeout(timer);
    const content = await load();
    if (dialog.open && (isLive() || content?.complete === false)) timer = setTimeout(ask, content?.complete === false ? 100 : 2000);
  };
  dialog.onclose = () => clearTimeout(timer);
  if (!dialog.open) dialog.showModal();
  ask();
  return ask;
}
document.querySelectorAll("[data-close]").forEach((button) => button.addEventListener("click", () => button.closest("dialog").close()));

export async function getJson(address) {
  const answer = await fetch(address);
  return answer.ok ? answer.json() : { error: `the server answered with status ${answer.status}` };
}
