// Search in a site that is read from a folder: browsers start no worker from file://, so the script of the worker
// runs in a hidden frame, which gets and sends the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc =
        "<script>postMessage = data => parent.postMessage(data, '*')</script>" +
        `<script src="${new URL(url, location.href)}"></script>`;
      this.loaded = new Promise(resolve => { this.frame.onload = resolve; });
      document.documentElement.append(this.frame);
      window.addEventListener("message", event => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
    }

    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
