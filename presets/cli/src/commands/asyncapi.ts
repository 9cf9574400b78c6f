import { defineCommand } from "citty";
import { surfaceFlags } from "../surface-flags.ts";

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
