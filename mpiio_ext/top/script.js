// Fetches what the server sees now, and shows it. All of it is text: nothing that a program calls itself becomes markup.
"use strict";
(() => {
  const live = document.getElementById("live"), chart = document.getElementById("chart");
  const state = document.getElementById("state"), top = document.getElementById("top");
  let interval = 1000;

  function element(name, text, style) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (style) made.className = style;
    return made;
  }

  function row(cell, texts, numbers) {
    const made = element("tr");
    texts.forEach((text, column) => made.append(element(cell, text, numbers[column] ? "n" : "")));
    return made;
  }

  function section(table) {
    const part = element("section"), frame = element("div", undefined, "scroll"), grid = element("table", undefined, "plain");
    const head = element("thead"), body = element("tbody");
    head.append(row("th", table.columns, table.numbers));
    table.rows.forEach(texts => body.append(row("td", texts, table.numbers)));
    grid.append(head, body);
    frame.append(grid);
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", table.title);
    part.append(element("h2", table.title), frame);
    if (table.note) part.append(element("p", table.note, "rule"));
    return part;
  }

  function line(points, style) {
    const made = document.createElementNS(chart.namespaceURI, "polyline");
    made.setAttribute("points", points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" "));
    made.setAttribute("class", style);
    return made;
  }

  function draw(seen) {
    const now = seen.sampled_unix_s, most = Math.max(1, ...seen.history.map(([, written, read]) => Math.max(written, read)));
    const place = index => seen.history.map(each => [300 - 300 * (now - each[0]) / seen.history_s, 98 - 94 * each[index] / most]);
    chart.replaceChildren(line([[0, 98], [300, 98]], "axis"), line(place(1), "written"), line(place(2), "read"));
    top.textContent = `The highest point is ${(most / 1e6).toFixed(1)} MB/s.`;
  }

  function show(seen) {
    interval = 1000 * seen.interval_s;
    live.replaceChildren(...seen.tables.map(section), ...seen.notes.map(text => element("p", text)));
    draw(seen);
    state.textContent = seen.ended
      ? `The job ended at ${seen.ended}: what is below is what it said last.`
      : `Seen at ${new Date(1000 * seen.sampled_unix_s).toLocaleTimeString()}; refreshed every ${seen.interval_s} s.`;
  }

  async function refresh() {
    let goesOn = true;
    try {
      const answer = await fetch("data", { cache: "no-store" });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const seen = await answer.json();
      goesOn = !seen.ended;
      show(seen);
    } catch (error) {
      state.textContent = `mpiio-ext top does not answer any more (${error.message}): what is below is what it said last.`;
    }
    if (goesOn) setTimeout(refresh, interval);
  }

  refresh();
})();
