// What both views need: a stream, texts, tables.

export function setText(id, said) {
  const element = document.getElementById(id);
  if (element.textContent !== said) element.textContent = said;
}

// For screen readers, when they are done with what they say; some things only if nothing was said for a while.
let said = -Infinity;
export function say(what, seconds = 0) {
  const now = performance.now();
  if (now - said < 1000 * seconds) return;
  said = now;
  setText("announce", what);
}

// A box that scrolls can be reached with the keyboard; one that does not is no stop on the way.
const scrolling = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  const box = target.closest(".scroll");
  if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) { box.tabIndex = 0; box.role = "group"; box.ariaLabel = box.querySelector("caption").textContent; }
  else { box.removeAttribute("tabindex"); box.removeAttribute("role"); box.removeAttribute("aria-label"); }
}));
document.querySelectorAll(".scroll, .scroll > table").forEach((element) => scrolling.observe(element));

export function listen(address, take) {
  const stream = new EventSource(address);
  const connection = document.getElementById("connection");
  stream.onmessage = (event) => take(JSON.parse(event.data));
  stream.onopen = () => { connection.textContent = ""; connection.className = ""; };
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) { document.getElementById("missing").hidden = false; document.getElementById("run").hidden = true; }
    connection.textContent = "no connection: this is the last that was heard"; connection.className = "broken";
  };
}

// Fill a table; rows and cells that are there already are used again, so that nothing jumps.
export function fill(id, rows) {
  const body = document.querySelector(`#${id} tbody`);
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, at) => {
    const line = body.rows[at] || body.insertRow();
    if (line.className !== (row.row || "")) line.className = row.row || "";
    row.cells.forEach((content, column) => {
      let cell = line.cells[column];
      if (!cell) {
        cell = document.createElement(row.header === column ? "th" : "td");
        if (row.header === column) { cell.scope = "row"; cell.classList.add("label"); }
        if ((row.numbers || []).includes(column)) cell.classList.add("number");
        line.append(cell);
      }
      const mark = row.mark && row.mark[column];
      if (mark !== undefined) cell.className = mark;
      if (typeof content === "string") { if (cell.textContent !== content || cell.firstElementChild) cell.textContent = content; }
      else cell.replaceChildren(content);
    });
  });
}
