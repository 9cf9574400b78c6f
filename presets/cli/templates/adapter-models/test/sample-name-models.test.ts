import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { modelsConformance } from "@portico/test/conformance/models";
import { sampleNameModels } from "../src/sample-name-models.ts";

// The rules of the port. The suite starts an upstream; `setting` has its address. `pass` advances the adapter's clock.
modelsConformance(
  "sample-name",
  ({ credential, models, ...setting }) => {
    const clock = createManualClock();
    const options = { ...setting, models: models === "discover" ? [] : models, credentialOf: async () => credential };
    return { adapter: sampleNameModels(options), others: [manualClock({ clock })], pass: clock.advance };
  },
  { upstream: "http" },
);
