import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const openapiCommand = defineCommand({
  meta: { name: "openapi", description: "Print the OpenAPI 3.1 document of a preset as JSON" },
  args: {
    preset: { type: "positional", required: false, description: "local (default), proxy, workflow or agent" },
    surface: { type: "string", valueHint: "name", description: "Only the calls of this surface: proxy, workflow or agent" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { describePreset } = await import("../openapi-document.ts");
    console.log(JSON.stringify(await describePreset(args, args), null, 2));
  },
});
