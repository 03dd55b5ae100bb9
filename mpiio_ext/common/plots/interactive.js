"use strict";
// Charts to point at: the value under the pointer, zoom by the wheel, move by dragging, series by the legend.
// By keys: left and right go from value to value, + and - zoom, Escape shows the whole, Enter switches a series.
(() => {
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  for (const svg of document.querySelectorAll("svg[data-marks]")) {
    const marks = JSON.parse(svg.dataset.marks);
    const whole = svg.getAttribute("viewBox").split(" ").map(Number);
    const off = new Set();
    let view = [...whole], grip = null, at = -1;
    const set = box => { view = box; svg.setAttribute("viewBox", box.join(" ")); };
    const place = event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [at.x, at.y];
    };
    const zoom = (x, y, factor) => {
      const by = Math.min(whole[2] / view[2], factor);
      if (view[2] * by < whole[2] / 50) return;
      set(by * view[2] >= whole[2] ? [...whole]
        : [x - (x - view[0]) * by, y - (y - view[1]) * by, view[2] * by, view[3] * by]);
    };
    const tell = (mark, across, down) => {
      tip.hidden = !mark;
      if (!mark) return;
      tip.textContent = mark[3];
      tip.style.left = `${Math.min(across + 12, scrollX + innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${down + 12}px`;
    };
    svg.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.shiftKey && event.deltaY > 0 && view[2] >= whole[2]) return;
      event.preventDefault();
      zoom(...place(event), Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))));
    }, { passive: false });
    svg.tabIndex = 0;
    svg.addEventListener("blur", () => { tip.hidden = true; });
    svg.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const factor = { "+": 0.7, "-": 1 / 0.7 }[event.key];
      if (event.target !== svg || !(step || factor || event.key === "Escape")) return;
      event.preventDefault();
      if (event.key === "Escape") { set([...whole]); tip.hidden = true; }
      const mark = marks[at];
      if (factor) zoom(mark ? mark[0] : view[0] + view[2] / 2, mark ? mark[1] : view[1] + view[3] / 2, factor);
      const shown = marks.filter(one => !off.has(one[2]));
      if (!step || !shown.length) return;
      at = marks.indexOf(shown[(shown.indexOf(mark) + step + shown.length) % shown.length]);
      const where = new DOMPoint(marks[at][0], marks[at][1]).matrixTransform(svg.getScreenCTM());
      tell(marks[at], where.x + scrollX, where.y + scrollY);
    });
    svg.addEventListener("pointerdown", event => { grip = place(event); });
    addEventListener("pointerup", () => { grip = null; });
    svg.addEventListener("dblclick", () => set([...whole]));
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    svg.addEventListener("pointermove", event => {
      const [x, y] = place(event);
      if (grip && view[2] < whole[2]) {
        set([view[0] + grip[0] - x, view[1] + grip[1] - y, view[2], view[3]]);
        return;
      }
      const reach = 14 * view[2] / whole[2];
      let best = reach * reach, found = null;
      for (const mark of marks) {
        const far = (mark[0] - x) ** 2 + (mark[1] - y) ** 2;
        if (far < best && !off.has(mark[2])) { best = far; found = mark; }
      }
      tell(found, event.pageX, event.pageY);
    });
    for (const key of svg.querySelectorAll("[class^=key-]")) {
      const number = Number(key.getAttribute("class").slice(4));
      key.style.cursor = "pointer";
      key.style.pointerEvents = "bounding-box";
      const part = key.matches("g") && !key.querySelector("text") ? null : key; // of mark and name the name is reached
      if (part) { part.setAttribute("tabindex", "0"); part.setAttribute("role", "button"); }
      const flip = () => {
        if (!off.delete(number)) off.add(number);
        const hidden = off.has(number);
        svg.querySelectorAll(`.key-${number}`).forEach(part => { part.style.opacity = hidden ? 0.35 : 1; });
        svg.querySelectorAll(`.series-${number}`).forEach(part => { part.style.display = hidden ? "none" : ""; });
        svg.querySelectorAll(`.key-${number}[role]`).forEach(one => one.setAttribute("aria-pressed", String(!hidden)));
      };
      key.addEventListener("click", flip);
      key.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); flip(); }
      });
    }
  }
})();
