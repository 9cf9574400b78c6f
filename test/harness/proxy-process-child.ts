import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { peakResident } from "./peak-resident.ts";
import type { FromProxyProcess, ToProxyProcess } from "./proxy-process.ts";
import { type ProxyApp, startProxy } from "./proxy-app.ts";

// The part of `proxy-process.ts` that runs in the separate process.
let proxy: ProxyApp | undefined;

process.on("message", async (message: ToProxyProcess) => {
  switch (message.type) {
    case "start": {
      // Writing a log line is part of the cost of a request. The destination of the line is not.
      const telemetry = openTelemetry({ destination: { write() {} } });
      const started = await startProxy({ providers: message.providers, telemetry });
      proxy = started;
      const ids = message.providers.map((provider) => provider.id ?? "main");
      const tokens = Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await started.token(id)])));
      return tell({ type: "ready", url: started.url, tokens });
    }
    case "memory": {
      // Two rounds: the second one collects what finalizers of the first one released.
      globalThis.gc?.();
      globalThis.gc?.();
      const { heapUsed, rss } = process.memoryUsage();
      return tell({ type: "memory", heap: heapUsed, resident: rss, peakResident: peakResident() });
    }
    case "close":
      await proxy?.close();
      process.disconnect();
  }
});

function tell(message: FromProxyProcess): void {
  process.send?.(message);
}
