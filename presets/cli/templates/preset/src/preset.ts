import { functionTools } from "@portico/adapters/tools/functions";
import { definePreset, fromEnv } from "@portico/core";
import { local, localSchema, type PlatformOptions } from "@portico/presets/local";
import * as v from "valibot";

/** All keys of a platform, and this preset's own. */
export const sampleNameSchema = v.strictObject({
  ...localSchema.entries,
  sampleName: v.optional(v.strictObject({ greeting: v.optional(fromEnv("SAMPLE_NAME_GREETING", v.string()), "Welcome") }), {}),
});

export type SampleNameSettings = v.InferOutput<typeof sampleNameSchema>;

/** Everything of preset `local`, and a tool for its agents. */
export const sampleNamePreset = definePreset((options: PlatformOptions<SampleNameSettings>) => ({
  name: "sample-name",
  extends: local(options),
  // Names of plugins to leave out, such as "agent-webhook".
  without: [],
  // If a port accepts only one adapter, an adapter here replaces the adapter of `local`.
  adapters: [greetingTool(options.settings.sampleName.greeting)],
  plugins: [],
}));

function greetingTool(greeting: string) {
  return functionTools({
    id: "sample-name",
    tools: [
      {
        name: "greeting",
        description: "Tells how guests are greeted here.",
        inputSchema: { type: "object", properties: {}, additionalProperties: false },
        riskLevel: "low",
        requiresConfirmation: false,
        idempotent: true,
        run: async () => greeting,
      },
    ],
  });
}
