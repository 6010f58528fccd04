// What the other parts use: elements, texts of numbers, and what is shown now.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 40, GAP = 16, BETWEEN = 60, PADDING = 20, TITLE = 22;
const $ = id => document.getElementById(id);
const key = address => address.join(".");
const make = (name, attributes, parent, text) => {
  const element = document.createElementNS(SVG, name);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};
const tag = (name, parent, text, kind) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  if (parent) parent.append(element);
  return element;
};
const many = n => n >= 1e9 ? (n / 1e9).toFixed(1) + "G" : n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e4 ? (n / 1e3).toFixed(1) + "k" : String(Math.round(n));
const bytes = n => n >= 1e9 ? (n / 1e9).toFixed(1) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(1) + " MB" : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " B";
const pen = document.createElement("canvas").getContext("2d");
const wide = text => { pen.font = "600 12px system-ui, -apple-system, 'Segoe UI', sans-serif"; return Math.ceil(pen.measureText(text).width); };
const shown = name => name.length > 24 ? name.slice(0, 23) + "…" : name;
const time = coordinates => coordinates.length === 1 ? String(coordinates[0]) : "(" + coordinates.join(", ") + ")";
const frontier = operator => operator.frontiers.length === 0 ? "" : operator.frontiers[0][1].length === 0 ? "done" : operator.frontiers[0][1].map(time).join(" ");

let state = null, before = null, current = null, picked = null, drawnFor = "", closed = new Set(), decided = false;
let view = {x: 0, y: 0, zoom: 1}, placed = new Map(), edgesShown = 0, rates = new Map(), history = new Map(), wanted = "", recorded = null, fitted = false;
