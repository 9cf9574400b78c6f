import { startPreset } from "portico/start";
import { sampleNamePreset, sampleNameSchema } from "./preset.ts";

// Without arguments, starts the service. With a command of portico, such as doctor, runs it with this preset.
await startPreset({
  name: "sample-name",
  description: "Agents, workflows and the model proxy of sample-name",
  schema: sampleNameSchema,
  build: sampleNamePreset,
});
