// The search runs in a worker, and browsers start no worker from a page that was opened as a file. There, and only there, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      this.loaded = new Promise(resolve => {
        inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
        // A worker's importScripts returns when the scripts have run; the search awaits this one.
        inside.importScripts = (...names) => names.reduce((before, name) => before.then(() => load(inside, new URL(name, url))), Promise.resolve());
        load(inside, url).then(() => resolve(inside));
      });
    }
    postMessage(data) {
      this.loaded.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}

function load(inside, url) {
  return new Promise((resolve, reject) => {
    const script = inside.document.createElement("script");
    script.src = String(url);
    script.onload = resolve;
    script.onerror = reject;
    inside.document.body.appendChild(script);
  });
}
