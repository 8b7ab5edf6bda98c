// Small aids for the pages: each of them works without this file.
"use strict";

// When the page is read anew (`live.js`), only what differs is exchanged: no scrolling, no lost focus.
function isBusy() {
  const active = document.activeElement;
  const typing = active && ["INPUT", "TEXTAREA", "SELECT"].includes(active.tagName);
  return document.hidden || typing || !getSelection().isCollapsed;
}

// Exchanges text and attributes of two trees of the same shape; where the shape differs, the new part takes the place.
function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const attribute of [...fresh.attributes]) {
    if (old.getAttribute(attribute.name) !== attribute.value) old.setAttribute(attribute.name, attribute.value);
  }
  for (const attribute of [...old.attributes]) {
    // What a person opened stays open.
    if (!fresh.hasAttribute(attribute.name) && attribute.name !== "open") old.removeAttribute(attribute.name);
  }
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, index) => {
    if (index < before.length) patch(before[index], child);
    else old.append(child.cloneNode(true));
  });
  before.slice(after.length).forEach((child) => child.remove());
}

// Whether the page is as the hub shows it now; not so while a person types in it or marks text.
async function refresh() {
  if (isBusy()) return false;
  const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
  if (answer.type === "opaqueredirect") {
    location.reload();
    return false;
  }
  if (!answer.ok) return false;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (isBusy()) return false;
  for (const part of ["main", "footer"]) patch(document.querySelector(part), fresh.querySelector(part));
  return true;
}

function keys(event) {
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const filter = document.getElementById("filter");
    if (filter) {
      event.preventDefault();
      filter.focus();
    }
  }
}

// What proves a sign-in link is behind the "#", which browsers send to no server: the form takes it along.
function followLink() {
  const form = document.querySelector("form.link");
  const token = location.hash.slice(1);
  if (!form || !token.startsWith("hfl_")) return;
  history.replaceState(null, "", location.pathname);
  form.elements.token.value = token;
  form.submit();
}

document.addEventListener("keydown", keys);
followLink();
window.holdfast = { refresh };
