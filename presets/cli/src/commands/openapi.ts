import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

/** Arguments of the commands that describe a surface of a preset. */
const surfaceFlags = {
  preset: { type: "positional", required: false, description: "local (default), proxy, workflow or agent" },
  surface: {
    type: "string",
    valueHint: "name",
    description: "proxy, workflow or agent; required if the preset has several surfaces",
  },
  ...settingsFlags,
} as const;

export const openapiCommand = defineCommand({
  meta: { name: "openapi", description: "Print the OpenAPI 3.1 document of a surface: its calls, as JSON" },
  args: surfaceFlags,
  async run({ args }) {
    const [{ readSurface }, { describedSurface }, { openAPIOf }] = await Promise.all([
      import("../read-surface.ts"),
      import("@portico/presets/platform/service-pages"),
      import("@portico/operator/api-docs/documents"),
    ]);
    const { areas, surface } = await readSurface(args, args);
    console.log(JSON.stringify(openAPIOf(areas, describedSurface(surface)), null, 2));
  },
});

export const asyncapiCommand = defineCommand({
  meta: { name: "asyncapi", description: "Print the AsyncAPI 3.0 document of a surface: its events, as JSON" },
  args: surfaceFlags,
  async run({ args }) {
    const [{ readSurface }, { describedSurface }, { asyncAPIOf }] = await Promise.all([
      import("../read-surface.ts"),
      import("@portico/presets/platform/service-pages"),
      import("@portico/operator/api-docs/documents"),
    ]);
    const { areas, surface } = await readSurface(args, args);
    console.log(JSON.stringify(asyncAPIOf(areas, describedSurface(surface)), null, 2));
  },
});
