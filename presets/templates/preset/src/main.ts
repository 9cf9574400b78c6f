import { startPreset } from "portico/start";
import { sampleNamePreset, sampleNameSchema } from "./preset.ts";

await startPreset({
  name: "sample-name",
  description: "Agents, workflows and the model proxy of sample-name",
  schema: sampleNameSchema,
  build: sampleNamePreset,
});
