import { defineCommand } from "citty";
import { surfaceFlags } from "../surface-flags.ts";

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
