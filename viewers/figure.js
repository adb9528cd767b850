"use strict";
(function () {
  // The theme: auto follows the reader's system; the button goes on to light, dark and back.
  var root = document.documentElement;
  var themes = ["auto", "light", "dark"];
  function setTheme(name) {
    if (name === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", name);
    document.querySelectorAll("[data-theme-toggle]").forEach(function (button) { button.textContent = "Theme: " + name; });
    document.dispatchEvent(new CustomEvent("wsf-theme"));
  }
  document.querySelectorAll("[data-theme-toggle]").forEach(function (button) {
    button.addEventListener("click", function () {
      var now = root.getAttribute("data-theme") || "auto";
      setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
    });
  });

  // One tooltip for the page; its words are set as text, never as markup.
  var tip = document.createElement("div");
  tip.className = "wsf-tip";
  tip.setAttribute("role", "tooltip");
  document.body.appendChild(tip);
  window.wsfTip = {
    show: function (text, x, y) {
      tip.textContent = text;
      tip.style.display = "block";
      var box = tip.getBoundingClientRect();
      tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
      tip.style.top = Math.max(4, y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16) + "px";
    },
    hide: function () { tip.style.display = "none"; }
  };
  document.addEventListener("pointermove", function (event) {
    var mark = event.target.closest && event.target.closest(".wsf-picture svg [aria-roledescription$=' mark']");
    if (mark) window.wsfTip.show(mark.getAttribute("aria-label"), event.clientX, event.clientY);
    else if (!event.target.closest || !event.target.closest(".wsf-canvas")) window.wsfTip.hide();
  });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") window.wsfTip.hide(); });

  function save(text, type, name) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], {type: type}));
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  window.wsfSave = save;
  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest("[data-save]");
    var figure = button && button.closest("figure.wsf");
    if (!figure) return;
    if (button.dataset.save === "csv") {
      save(JSON.parse(figure.querySelector("script.wsf-csv").textContent), "text/csv", figure.dataset.name + ".csv");
    } else if (button.dataset.save === "svg") {
      var svg = figure.querySelector(".wsf-picture svg").cloneNode(true);
      save(new XMLSerializer().serializeToString(svg), "image/svg+xml", figure.dataset.name + ".svg");
    }
  });
})();
