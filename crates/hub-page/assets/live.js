// What changed on the hub is on the page within a second; without this file, or without the stream, every ten seconds.
"use strict";

(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;

  // Without the stream.
  const PERIOD_MS = 10000;
  // With it: only the ages of facts grow old.
  const AGES_MS = 60000;
  // A page of one host is read at most this often, and one of the fleet.
  const HOST_PAUSE_MS = 1500;
  const FLEET_PAUSE_MS = 4000;
  const AGAIN_MS = 60000;

  const place = location.pathname.match(/^\/hosts\/([^/]+)/);
  const host = place && decodeURIComponent(place[1]);
  const pause = host ? HOST_PAUSE_MS : FLEET_PAUSE_MS;
  const said = document.getElementById("live-said");
  let source = null;
  let read = Date.now();
  let changedAt = 0;
  let due = null;

  const summary = () => [...document.querySelectorAll("h1 .word, .counts .word, .items > .item > p:first-child")]
    .map((part) => part.textContent.replace(/\s+/g, " ").trim()).join("; ");

  async function reload() {
    const before = summary();
    read = Date.now();
    if (!(await window.holdfast.refresh())) return false;
    // Said only where a state is another one: each new age would be noise.
    if (said && summary() !== before) said.textContent = "The page has changed: " + summary().slice(0, 200);
    return true;
  }

  // The first change at once; those that follow closely together.
  function changed() {
    if (due) return;
    due = setTimeout(async () => {
      due = null;
      changedAt = Date.now();
      const done = await reload().catch(() => false);
      if (!done && !document.hidden) due = setTimeout(() => { due = null; changed(); }, pause);
    }, Math.max(0, changedAt + pause - Date.now()));
  }

  function listen() {
    if (source || document.hidden || !window.EventSource) return;
    const query = new URLSearchParams({ after: main.dataset.live });
    if (host) query.set("host", host);
    source = new EventSource("/live?" + query);
    source.addEventListener("changed", (event) => {
      main.dataset.live = event.lastEventId;
      changed();
    });
    source.addEventListener("error", () => {
      // Where the browser does not come back by itself, the page does.
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(listen, AGAIN_MS);
      }
    });
  }

  // A page that is not looked at takes no connection; the number that it knows says later what it missed.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else {
      listen();
    }
  });
  addEventListener("pagehide", () => source && source.close());

  setInterval(() => {
    const period = source && source.readyState === EventSource.OPEN ? AGES_MS : PERIOD_MS;
    if (Date.now() - read >= period - 500) reload().catch(() => undefined);
  }, PERIOD_MS);
  listen();
})();
