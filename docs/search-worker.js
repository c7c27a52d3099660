// The site's search runs in a worker. A browser starts none for a page that was opened as a file, so that a hidden frame
// takes its place.
(function () {
  "use strict";
  if (location.protocol !== "file:") { return; }

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => this.emit(new MessageEvent("message", { data: structuredClone(data) }));
      const script = inside.document.createElement("script");
      this.ready = new Promise(resolve => script.addEventListener("load", resolve));
      script.addEventListener("error", () => this.emit(new ErrorEvent("error", { filename: String(address) })));
      script.src = address;
      inside.document.body.appendChild(script);
    }

    emit(event) {
      this.dispatchEvent(event);
      const handler = this["on" + event.type];
      if (handler) { handler.call(this, event); }
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        if (inside) { inside.dispatchEvent(new MessageEvent("message", { data: copy })); }
      });
    }

    terminate() { this.frame.remove(); }
  };
}());
