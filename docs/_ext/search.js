/*
 * The pages that the search finds, in their order, and an excerpt under each result.
 *
 * Problem    Sphinx finds only pages that have every word of a question, gives a page that is about a word as many
 *            points as one that has it once, and fetches excerpts from a server, which a site in a folder lacks.
 * Algorithm  PAGE_TEXTS (search-texts.js, which mpiio_ext_site.py writes) has the lines of each page, and words that
 *            people use in place of the page's own. Words are stemmed; a rare word weighs more (BM25). A word weighs
 *            most in the title, then among these other words, in the text, and in a heading. A page has points in
 *            proportion to the share of the question that it has, and by its kind. A result leads to the heading that
 *            has most of the question. A name of the reference, as of a hint, comes first if it is the question, and
 *            last otherwise.
 * Guarantee  Nothing is fetched: the search of a site that is opened as a file is that of a served one.
 */
var PAGE_KINDS = [
  [/^docs\/(howto|tutorial)\//, 1.3],
  [/^docs\/explanation\/public-complaints$/, 0.5],
  [/^docs\/reference\/(python|c$|c-api|api$)/, 0.5],
  [/^docs\/(explanation|reference)\//, 1],
  [/^CONTRIBUTING$/, 0.9],
  [/./, 0.6], // lists of pages, changelog, pages for developers
];
var TITLE = 3, OTHER = 2.5, HEADING = 1.5, TEXT = 2;
var EXCERPT = 220; // characters

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 0,
  objPrio: {},
  objPrioDefault: 0,
  title: 0,
  partialTitle: 0,
  term: 0,
  partialTerm: 0,
};

function searchedWords(text) {
  const words = text.toLowerCase().replace(/\bi\/o\b/g, "io").match(/[a-z0-9_]+(?:\.[0-9]+)*/g) || [];
  return words.filter((word) => word.length > 1 && !stopwords.has(word));
}

function termsOf(text) { // stems of the words, and of the parts of a name
  const stemmer = new Stemmer();
  const words = searchedWords(text).flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word]));
  return words.map((word) => stemmer.stemWord(word));
}

// ---- the pages ----

var thePages = null;

function readPages(index) {
  const pages = index.docnames.map((name, number) => {
    const [text, other] = PAGE_TEXTS[name] || ["", ""];
    const counts = new Map();
    const terms = termsOf(text);
    terms.forEach((term) => counts.set(term, (counts.get(term) || 0) + 1));
    const title = index.titles[number];
    return {
      name, title, file: index.filenames[number], counts, length: terms.length,
      titleTerms: termsOf(title), others: other.split(",").map(termsOf), headings: [],
    };
  });
  Object.entries(index.alltitles).forEach(([heading, found]) => {
    const sections = found.filter(([, anchor]) => anchor); // others are titles of pages
    sections.forEach(([number, anchor]) => pages[number].headings.push({ heading, anchor, terms: termsOf(heading) }));
  });
  pages.forEach((page) => {
    page.terms = new Set([
      ...page.counts.keys(), ...page.titleTerms, ...page.others.flat(), ...page.headings.flatMap((one) => one.terms),
    ]);
  });
  return pages;
}

function sum(numbers) {
  return numbers.reduce((all, each) => all + each, 0);
}

function rankedPages(pages, terms) { // those that have a term, with their points and the best heading, or null
  const weights = terms.map((term) => {
    const many = pages.filter((page) => page.terms.has(term)).length;
    return [term, Math.log(1 + (pages.length - many + 0.5) / (many + 0.5))];
  });
  const weightOf = (found) => sum(weights.map(([term, weight]) => weight * found(term)));
  const ofLine = (line) => { // the more, the less else the line has
    const part = line.filter((term) => terms.includes(term)).length / (line.length || 1);
    return weightOf((term) => line.includes(term)) * (1 + part) / 2;
  };
  const every = weightOf(() => 1);
  const mean = sum(pages.map((page) => page.length)) / pages.length;
  return pages.filter((page) => terms.some((term) => page.terms.has(term))).map((page) => {
    const counted = weightOf((term) => {
      const many = page.counts.get(term) || 0;
      return many / (many + 0.6 + 0.9 * page.length / mean);
    });
    const title = ofLine(page.titleTerms);
    let best = null, most = 0;
    page.headings.forEach((one) => {
      const points = ofLine(one.terms);
      if (points > most) [best, most] = [one, points];
    });
    const points = TITLE * title + OTHER * Math.max(...page.others.map(ofLine)) + HEADING * most + TEXT * counted;
    const share = weightOf((term) => page.terms.has(term)) / every;
    const kind = PAGE_KINDS.find(([pattern]) => pattern.test(page.name))[1];
    return { page, points: points * share * kind, best: most > title ? best : null };
  }).sort((one, other) => other.points - one.points);
}

function rankResults(query, bySphinx) { // as Sphinx has them: the best one last
  thePages = thePages || readPages(Search._index);
  const names = bySphinx.filter((one) => one[6] === "object");
  const isAsked = (one) => one[1].toLowerCase() === query.trim().toLowerCase();
  const found = rankedPages(thePages, [...new Set(termsOf(query))]).map(({ page, points, best }) =>
    best
      ? [page.name, `${page.title} > ${best.heading}`, `#${best.anchor}`, null, points, page.file, "title"]
      : [page.name, page.title, "", null, points, page.file, "text"],
  );
  return [...names.filter(isAsked), ...found, ...names.filter((one) => !isAsked(one))].reverse();
}

// This script is behind searchtools.js, and before the index, with which the first result comes.
var searchOfSphinx = Search._performSearch;
Search._performSearch = (query, ...rest) => rankResults(query, searchOfSphinx(query, ...rest));

// ---- excerpts ----

function places(text, word) { // where words begin with it
  return [...text.toLowerCase().matchAll(new RegExp(`(?<![a-z0-9])${_escapeRegExp(word)}`, "g"))].map((at) => at.index);
}

function excerpt(page, heading, words) {
  const text = (PAGE_TEXTS[page] || [""])[0];
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

// The list of results is above this script.
addExcerpts(document.getElementById("search-results"));
