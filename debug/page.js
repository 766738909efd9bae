"use strict";
// Puts what the server sends in place of the live part, while the page is visible.
(() => {
  const live = document.getElementById("live"), state = document.getElementById("state");
  let source, late;
  const say = (text, bad) => { state.textContent = text; state.className = bad ? "tag bad" : "tag"; };
  const open = () => {
    const query = new URLSearchParams(location.search);
    query.set("as", "events");
    source = new EventSource("?" + query);
    source.onmessage = event => {
      clearTimeout(late);
      late = setTimeout(say, 15000, "no news for 15 s", true);
      if (!getSelection().isCollapsed) return say("held while text is selected");
      live.innerHTML = event.data; // made by html/template, which escapes everything
      say("live");
    };
    source.onerror = () => {
      say("connection lost", true);
      if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
    };
  };
  document.addEventListener("visibilitychange", () => {
    clearTimeout(late);
    source.close();
    if (!document.hidden) open();
  });
  open();
})();
