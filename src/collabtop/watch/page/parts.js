// Used by both views: texts, announcements, the stream of updates, and tables.

export function setText(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
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
document.querySelectorAll(".scroll, .scroll > table").forEach((element) => scrolling.observe(element));

export function listen(address, update) {
  const stream = new EventSource(address);
  const connection = document.getElementById("connection");
  stream.onmessage = (event) => update(JSON.parse(event.data));
  stream.onopen = () => { connection.textContent = ""; connection.className = ""; };
  stream.onerror = () => {
    const run = document.getElementById("run");
    if (stream.readyState === EventSource.CLOSED && !run.hidden) { document.getElementById("missing").hidden = false; run.hidden = true; return; }
    connection.textContent = "connection lost: showing the last known state"; connection.className = "broken";
  };
}

// Fills a table and reuses its rows and cells, so that nothing jumps.
export function fill(id, rows) {
  const body = document.querySelector(`#${id} tbody`);
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, index) => {
    const line = body.rows[index] || body.insertRow();
    if (line.className !== (row.className || "")) line.className = row.className || "";
    row.cells.forEach((content, column) => {
      let cell = line.cells[column];
      if (!cell) {
        cell = document.createElement(row.header === column ? "th" : "td");
        if (row.header === column) { cell.scope = "row"; cell.classList.add("label"); }
        if ((row.numbers || []).includes(column)) cell.classList.add("number");
        line.append(cell);
      }
      const className = row.classNames && row.classNames[column];
      if (className !== undefined) cell.className = className;
      if (typeof content === "string") { if (cell.textContent !== content || cell.firstElementChild) cell.textContent = content; }
      else cell.replaceChildren(content);
    });
  });
}
