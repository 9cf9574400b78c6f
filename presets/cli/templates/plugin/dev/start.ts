// Runs the plugin as a service, to try it: `SAMPLE_NAME_TOKEN=secret npm start`. Records are stored in `.portico`.
import { definePreset } from "@portico/core";
import { type PlatformOptions, proxy, proxySchema } from "@portico/presets/proxy";
import { startPreset } from "portico/start";
import * as v from "valibot";
import { sampleNameConfig } from "../src/config.ts";
import { sampleNamePlugin } from "../src/plugin.ts";

const schema = v.strictObject({ ...proxySchema.entries, sampleName: sampleNameConfig });

const build = definePreset((options: PlatformOptions<v.InferOutput<typeof schema>>) => ({
  name: "sample-name",
  // Stores, clock and logs of the model proxy, without the proxy.
  extends: proxy(options),
  without: ["model-proxy"],
  plugins: [sampleNamePlugin(options.settings.sampleName)],
}));

await startPreset({ name: "sample-name", schema, build });
