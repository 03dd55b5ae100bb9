// Fetches what the server sees now, and shows it. All of it is text: nothing that a program calls itself becomes markup.
"use strict";
(() => {
  const byId = name => document.getElementById(name);
  const live = byId("live"), chart = byId("chart"), state = byId("state");
  const LEFT = 76, RIGHT = 12, TOP = 10, BOTTOM = 26, MINUTE = 60;
  let interval = 1000, last = null;

  function element(name, text, style) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (style) made.className = style;
    return made;
  }

  function row(cell, texts, styles, link) {
    const made = element("tr");
    texts.forEach((text, column) => made.append(element(cell, text, styles[column])));
    if (link) {
      const anchor = element("a", texts[0]);
      anchor.href = link;
      made.firstChild.replaceChildren(anchor);
    }
    return made;
  }

  function section(table) {
    const part = element("section"), frame = element("div", undefined, "scroll"), grid = element("table", undefined, "plain");
    const head = element("thead"), body = element("tbody");
    head.append(row("th", table.columns, table.styles));
    table.rows.forEach((texts, index) => body.append(row("td", texts, table.styles, table.links[index])));
    grid.append(head, body);
    frame.append(grid);
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", table.title);
    part.append(element("h2", table.title), frame);
    if (table.note) part.append(element("p", table.note, "rule"));
    return part;
  }

  function shape(name, attributes, text) {
    const made = document.createElementNS(chart.namespaceURI, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const line = (points, style) =>
    shape("polyline", { class: style, points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ") });

  function speed(value) {
    const [unit, name] = value >= 1e9 ? [1e9, "GB/s"] : value >= 1e6 ? [1e6, "MB/s"] : value >= 1e3 ? [1e3, "kB/s"] : [1, "B/s"];
    return `${Number((value / unit).toPrecision(3))} ${name}`;
  }

  // The smallest of 1, 2, 5, 10, … that makes at most four steps of what is to be shown.
  function step(most) {
    const power = 10 ** Math.floor(Math.log10(most / 4));
    return [1, 2, 5, 10].map(each => each * power).find(each => most / each <= 4);
  }

  function draw(seen) {
    const points = seen.history, now = seen.sampled_unix_s;
    const most = Math.max(1000, ...points.map(([, written, read]) => Math.max(written, read)));
    const each = step(most), end = each * Math.ceil(most / each);
    const width = chart.clientWidth, height = chart.clientHeight;
    const x = time => width - RIGHT - (width - LEFT - RIGHT) * (now - time) / seen.history_s;
    const y = value => height - BOTTOM - (height - TOP - BOTTOM) * value / end;
    const marks = [];
    for (let value = 0; value <= end * 1.001; value += each)
      marks.push(line([[LEFT, y(value)], [width - RIGHT, y(value)]], "axis"),
        shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value ? speed(value) : "0"));
    for (let ago = 0; ago <= seen.history_s; ago += MINUTE) {
      const at = x(now - ago);
      marks.push(line([[at, y(0)], [at, y(0) + 5]], "axis"),
        shape("text", { x: at, y: height - 4, "text-anchor": ago ? "middle" : "end" }, ago ? `−${ago / MINUTE} min` : seen.ended || "now"));
    }
    const shown = points.filter(([time]) => now - time <= seen.history_s);
    ["written", "read"].forEach((name, index) => marks.push(line(shown.map(one => [x(one[0]), y(one[index + 1])]), name)));
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.replaceChildren(...marks);
  }

  function figure(seen) {
    const points = seen.history, [, written, read] = points[points.length - 1] || [0, 0, 0];
    chart.closest("figure").hidden = points.length < 2;
    const peak = speed(Math.max(0, ...points.map(one => Math.max(one[1], one[2]))));
    byId("finding").textContent = seen.ended
      ? `At most ${peak} in the last ${seen.history_s / MINUTE} minutes before the end`
      : `Now ${speed(written)} written, ${speed(read)} read; at most ${peak} in the last ${seen.history_s / MINUTE} minutes`;
    const lines = points.map(([time, ...both]) => [time.toFixed(3), ...both.map(value => value.toFixed(0))].join(","));
    byId("data").href = "data:text/csv," + encodeURIComponent(["time_unix_s,written_bytes_per_s,read_bytes_per_s", ...lines, ""].join("\n"));
    byId("data").setAttribute("aria-label", `Data of: ${byId("finding").textContent}`);
    if (points.length > 1) draw(seen);
  }

  function show(seen) {
    last = seen;
    interval = 1000 * seen.interval_s;
    live.replaceChildren(...seen.tables.map(section), ...seen.notes.map(text => element("p", text)));
    figure(seen);
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

  addEventListener("resize", () => last && figure(last));
  refresh();
})();
