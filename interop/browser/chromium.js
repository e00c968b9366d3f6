/** A headless Chromium, and pages of several origins that it shows. */
import { createServer } from "node:http";
import { once } from "node:events";
import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // All names in the reserved domain `.test` lead to this machine.
  "--host-resolver-rules=MAP *.test 127.0.0.1",
];

/** Chromium with a new profile. @returns {Promise<import("playwright-core").Browser>} */
export function startBrowser() {
  const executablePath = process.env.LONGHAUL_CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: FLAGS });
}

/** A web server with an empty page under every name and path. */
export async function startPages() {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>A page</title>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: (name) => `http://${name}:${server.address().port}`,
    stop: () => server.close(),
  };
}
