import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { modelsConformance } from "@portico/test/conformance/models";
import { gateway } from "./own-provider.ts";

modelsConformance(
  "playground/own-provider.ts",
  ({ credential, models, ...setting }) => {
    const clock = createManualClock();
    const signIn = async () => ({ token: credential, expiresInMs: 3_600_000 });
    const adapter = gateway({ ...setting, models: models === "discover" ? [] : models, signIn });
    return { adapter, others: [manualClock({ clock })], pass: clock.advance };
  },
  { upstream: "http" },
);
