"use strict";
// Convenience only: the page is complete without it.
(() => {
  const kernels = [...document.querySelectorAll("#kernels details.kernel")];
  const all = () => [...document.querySelectorAll("details")];
  const tools = document.querySelector(".tools");
  if (tools) {
    tools.hidden = false;
    document.getElementById("open").onclick = () => kernels.forEach(d => { d.open = true; });
    document.getElementById("close").onclick = () => kernels.forEach(d => { d.open = false; });
    document.getElementById("filter").oninput = event => {
      const words = event.target.value.toLowerCase().split(/\s+/);
      kernels.forEach(d => {
        const name = d.querySelector("summary").textContent.toLowerCase();
        d.hidden = !words.every(word => name.includes(word));
      });
    };
  }
  // A link into a closed section opens it, where the browser does not by itself.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    const around = target && target.closest("details");
    if (around && !around.open) { around.hidden = false; around.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();
  // Browsers whose style sheets cannot open sections print them open all the same.
  let closed = [];
  addEventListener("beforeprint", () => { closed = all().filter(d => !d.open); closed.forEach(d => { d.open = true; }); });
  addEventListener("afterprint", () => { closed.forEach(d => { d.open = false; }); closed = []; });
})();
