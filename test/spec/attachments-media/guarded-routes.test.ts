import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { expect, it } from "vitest";
import { startFilesService } from "../../harness/files-app.ts";
import { guardedRoutes, routesOf } from "../../harness/guarded-routes.ts";

const { contract } = attachmentsMedia({}).spec;
const parameters = { attachmentId: "00000000-0000-4000-8000-000000000000", filename: "00000000-0000-4000-8000-000000000000.png" };

guardedRoutes({
  ...{ contract, parameters },
  guard: "instance",
  unauthorized: { error: "unauthorized" },
  start: startFilesService,
});

it("there is one route without the token: the reading of media, by its signed link", () => {
  const others = routesOf({ contract, parameters }).filter(({ auth }) => auth !== "instance");
  expect(others.map(({ key, auth }) => [key, auth])).toEqual([["readMedia", "signed"]]);
});
