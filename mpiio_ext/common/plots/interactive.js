"use strict";
// Charts to point at: the value under the pointer, zoom by the wheel, move by dragging, series by the legend.
(() => {
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  for (const svg of document.querySelectorAll("svg[data-marks]")) {
    const marks = JSON.parse(svg.dataset.marks);
    const whole = svg.getAttribute("viewBox").split(" ").map(Number);
    const off = new Set();
    let view = [...whole], grip = null;
    const set = box => { view = box; svg.setAttribute("viewBox", box.join(" ")); };
    const place = event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [at.x, at.y];
    };
    svg.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.shiftKey && event.deltaY > 0 && view[2] >= whole[2]) return;
      event.preventDefault();
      const [x, y] = place(event);
      const by = Math.min(whole[2] / view[2], Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))));
      if (view[2] * by < whole[2] / 50) return;
      set(by * view[2] >= whole[2] ? [...whole]
        : [x - (x - view[0]) * by, y - (y - view[1]) * by, view[2] * by, view[3] * by]);
    }, { passive: false });
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
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = found[3];
      tip.style.left = `${Math.min(event.pageX + 12, scrollX + innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${event.pageY + 12}px`;
    });
    for (const key of svg.querySelectorAll("[class^=key-]")) {
      const number = Number(key.getAttribute("class").slice(4));
      key.style.cursor = "pointer";
      key.style.pointerEvents = "bounding-box";
      key.addEventListener("click", () => {
        if (!off.delete(number)) off.add(number);
        const hidden = off.has(number);
        svg.querySelectorAll(`.key-${number}`).forEach(part => { part.style.opacity = hidden ? 0.35 : 1; });
        svg.querySelectorAll(`.series-${number}`).forEach(part => { part.style.display = hidden ? "none" : ""; });
      });
    }
  }
})();
