// What the theme leaves out for screen readers and keyboards: a name for the search dialog, and focus for what scrolls sideways.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");

const focusWhatScrolls = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, pre > code, .md-sidebar__scrollwrap"))
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
};
addEventListener("load", focusWhatScrolls);
addEventListener("resize", focusWhatScrolls);
