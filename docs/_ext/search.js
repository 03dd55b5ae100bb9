/*
 * The rank of what the search finds, and an excerpt under each result.
 *
 * Problem    Sphinx gives a page that is about a word as many points as one that has it once, and fetches excerpts from
 *            a server, which a site that is opened as a file does not have.
 * Algorithm  PAGE_TEXTS (search-texts.js, which mpiio_ext_site.py writes) has the lines of each page. A result gets
 *            points for the kind of its page and for how often the rarest word of the query is in it. The excerpt begins
 *            before the first of these words, behind the heading where the result is one.
 * Guarantee  Nothing is fetched: the search of a site that is opened as a file is that of a served one.
 */
var PAGE_KINDS = [
  [/^docs\/(howto|tutorial)\//, 12],
  [/^docs\/reference\/messages$/, 3],
  [/^docs\/explanation\/public-complaints$/, -6],
  [/^docs\/explanation\//, 4],
  [/^docs\/reference\/(python|c$|c-api|api$)/, -12],
  [/^docs\/reference\//, 0],
  [/^docs\/index$/, -4],
  [/./, -16], // changelog, pages for developers
];
var HINT = 20;
var EXCERPT = 220; // characters

function searchedWords(query) {
  return splitQuery(query.toLowerCase()).filter((word) => word.length > 1 && !stopwords.has(word));
}

function places(text, word) { // where words begin with it
  return [...text.toLowerCase().matchAll(new RegExp(`(?<![a-z0-9])${_escapeRegExp(word)}`, "g"))].map((at) => at.index);
}

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 4,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, _title, anchor, _description, score, _file, kind]) => {
    const words = searchedWords(new URLSearchParams(window.location.search).get("q") || "");
    const least = Math.min(...words.map((word) => places(PAGE_TEXTS[page] || "", word).length));
    const often = kind === "text" && words.length ? 2 * Math.log2(1 + Math.min(least, 30)) : 0;
    const named = words.length === 1 && anchor === `#confval-${words[0]}` ? HINT : 0; // the hint itself
    return score + named + PAGE_KINDS.find(([pattern]) => pattern.test(page))[1] + often;
  },
};

function excerpt(page, heading, words) {
  const text = PAGE_TEXTS[page] || "";
  const start = heading ? Math.max(text.indexOf(`\n${heading}\n`), 0) : 0;
  const behind = words.flatMap((word) => places(text, word)).filter((place) => place >= start);
  const first = behind.length ? Math.min(...behind) : start;
  const from = first < EXCERPT / 2 ? 0 : text.indexOf(" ", first - EXCERPT / 3) + 1;
  return (from ? "… " : "") + text.slice(from, from + EXCERPT).replace(/\S*$/, "…");
}

function addExcerpts(out) {
  const root = new URL(".", window.location.href).href;
  const words = searchedWords(new URLSearchParams(window.location.search).get("q") || "");
  const add = (item) => {
    const link = item.querySelector("a");
    const page = link.href.slice(root.length).replace(/\.html(#.*)?$/, "");
    const heading = link.hash ? link.textContent.split(" > ").pop() : "";
    const line = item.appendChild(document.createElement("p"));
    line.className = "context";
    line.textContent = excerpt(page, heading, words);
    words.forEach((word) => _highlightText(line, word, "highlighted"));
  };
  new MutationObserver((changes) =>
    changes.forEach((change) => change.addedNodes.forEach((node) => node.nodeName === "LI" && add(node))),
  ).observe(out, { childList: true, subtree: true });
}

// This script is behind the list, and before the index, with which the first result comes.
addExcerpts(document.getElementById("search-results"));
