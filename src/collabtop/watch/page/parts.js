// What both views need: a stream, texts, tables.

export function setText(id, said) {
  const element = document.getElementById(id);
  if (element.textContent !== said) element.textContent = said;
}

export function say(what) { setText("announce", what); }

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
