import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { peakResident } from "./peak-resident.ts";
import type { FromProxyProcess, ToProxyProcess } from "./proxy-process.ts";
import { type ProxyApp, startProxy } from "./proxy-app.ts";

// The other side of `proxy-process.ts`: what runs in the process of its own.
let proxy: ProxyApp | undefined;

process.on("message", async (message: ToProxyProcess) => {
  switch (message.type) {
    case "start": {
      // What is logged of each request is part of what it costs; where it goes is not.
      const telemetry = openTelemetry({ destination: { write() {} } });
      const started = await startProxy({ providers: message.providers, telemetry });
      proxy = started;
      const ids = message.providers.map((provider) => provider.id ?? "main");
      const tokens = Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await started.token(id)])));
      return tell({ type: "ready", url: started.url, tokens });
    }
    case "memory": {
      // Twice: what finalizers let go of in the first round is collected in the second.
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
