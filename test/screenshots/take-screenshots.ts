// The pictures in docs/images, taken anew: `npm run docs:screenshots`. With what a busy day leaves, made by the demo model.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { connectAgent } from "@portico/client";
import { findChromium, startChromium } from "../harness/chromium.ts";
import { DESKTOP, openConsole, PHONE } from "../harness/console.ts";

const images = resolve(import.meta.dirname, "../../docs/images");
mkdirSync(images, { recursive: true });

const path = findChromium();
if (path === undefined) throw new Error("No Chromium is found: PORTICO_TEST_CHROMIUM names one");
const browser = await startChromium(path);
try {
  await using opened = await openConsole({
    browser,
    files: {
      "agents/helper/agent.json": { name: "Helper" },
      "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
    },
    context: { colorScheme: "light", viewport: DESKTOP },
  });
  const { page, service, token } = opened;
  await using client = connectAgent({ baseURL: service.url("agent"), token });
  await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
  await client.submit({ agentId: "broken", prompt: "Summarize the week" }).ended;

  await opened.goTo("Providers");
  for (const protocol of ["Messages", "Chat Completions"]) {
    await page.getByRole("tab", { name: protocol }).click();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Completed").waitFor();
  }
  const take = async (name: string) => {
    // Figures and health arrive by themselves.
    await page.getByText("Ready", { exact: true }).nth(1).waitFor();
    await page.getByText(/\d MB/).waitFor();
    await page.screenshot({ path: resolve(images, `${name}.png`) });
  };
  await opened.goTo("Overview");
  await page.getByRole("table", { name: "Failed runs" }).waitFor();
  await take("console-overview");
  await page.setViewportSize(PHONE);
  await take("console-overview-phone");
} finally {
  await browser.close();
}
