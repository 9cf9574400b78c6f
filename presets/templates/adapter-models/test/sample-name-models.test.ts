import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { modelsConformance } from "@portico/test/conformance/models";
import { sampleNameModels } from "../src/sample-name-models.ts";

// The law of the port. The suite brings an upstream and says in `setting` where it listens; `pass` lets time pass on the adapter's clock.
modelsConformance(
  "sample-name",
  ({ credential, models, ...setting }) => {
    const clock = createManualClock();
    const options = { ...setting, models: models === "discover" ? [] : models, credentialOf: async () => credential };
    return { adapter: sampleNameModels(options), others: [manualClock({ clock })], pass: clock.advance };
  },
  { upstream: "http" },
);
