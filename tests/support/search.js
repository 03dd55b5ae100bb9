/*
 * The search of the site without a browser: node search.js FOLDER_OF_HTML QUERY... prints {query: [page, ...]} as JSON,
 * the best page first. The site's own scripts run, with what they ask of a document left empty.
 */
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, ...queries] = process.argv.slice(2);
const element = { classList: { add() {} }, setAttribute() {} };
const context = {
  console,
  SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: {},
  MutationObserver: class { observe() {} },
  URL: class { href = "" },
  URLSearchParams,
  _: (text) => text,
  _ready: () => {},
  location: { search: "" },
  document: { getElementById: () => element, documentElement: { dataset: {} } },
};
context.window = context;
vm.createContext(context);
// One script: what is declared by `const` and `class` in one of them is seen by the others.
const names = ["_static/search-texts.js", "_static/searchtools.js", "_static/language_data.js", "searchindex.js"];
const texts = names.map((name) => fs.readFileSync(path.join(folder, name), "utf8"));
vm.runInContext(`${texts.join(";\n")};\nwindow.Search = Search;`, context);

const found = {};
for (const query of queries) {
  const results = context.Search._performSearch(...context.Search._parseQuery(query));
  found[query] = [...new Set(results.reverse().map(([page]) => page))]; // it prints from the end
}
console.log(JSON.stringify(found));
