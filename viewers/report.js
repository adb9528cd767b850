(function () {
  // A number opens the query that makes it.
  function open() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView({block: "center"}); }
  }
  window.addEventListener("hashchange", open);
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a.rep-n");
    if (!link) return;
    document.querySelectorAll(".rep-from").forEach(function (old) { old.classList.remove("rep-from"); });
    link.classList.add("rep-from");
    setTimeout(open, 0);
  });
  open();
  document.body.dataset.drawn = "yes";
})();
