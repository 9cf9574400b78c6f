import { defineCommand } from "citty";
import { surfaceFlags } from "../surface-flags.ts";

export const openapiCommand = defineCommand({
  meta: { name: "openapi", description: "Print the OpenAPI 3.1 document of a surface: its calls, as JSON" },
  args: surfaceFlags,
  async run({ args }) {
    const [{ readSurface }, { openAPIOf }] = await Promise.all([
      import("../read-surface.ts"),
      import("../../platform/api-documents.ts"),
    ]);
    const { areas, surface } = await readSurface(args, args);
    console.log(JSON.stringify(openAPIOf(areas, surface), null, 2));
  },
});
