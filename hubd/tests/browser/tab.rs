//! One tab of a browser, with cookies of its own.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::chromium::Chromium;

/// What a page or the browser complains about.
const COMPLAINTS: [&str; 3] = ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];

/// Before any script of a page: what the page's policy refused is written down.
const WATCH: &str = "window.refused = []; addEventListener('securitypolicyviolation', (event) => \
    window.refused.push(`${event.effectiveDirective} refused ${event.blockedURI} ${event.sample}`));";

/// Far more than anything here takes on a slow machine.
const BOUND: Duration = Duration::from_secs(120);

/// What colours the device prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    Light,
    Dark,
}

impl Device {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

pub struct Tab {
    chromium: Rc<RefCell<Chromium>>,
    session: String,
    context: String,
    url: String,
}

impl Tab {
    /// A new tab of a new person, at no page.
    pub fn open(chromium: &Rc<RefCell<Chromium>>, url: &str) -> Self {
        let mut browser = chromium.borrow_mut();
        let context = browser.call(None, "Target.createBrowserContext", &json!({}));
        let context = context["browserContextId"].as_str().unwrap().to_owned();
        let blank = json!({ "url": "about:blank", "browserContextId": context });
        let target = browser.call(None, "Target.createTarget", &blank)["targetId"].take();
        let attach = json!({ "targetId": target, "flatten": true });
        let session = browser.call(None, "Target.attachToTarget", &attach)["sessionId"].take();
        drop(browser);
        let session = session.as_str().unwrap().to_owned();
        let tab = Self { chromium: Rc::clone(chromium), session, context, url: url.to_owned() };
        for part in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{part}.enable"), &json!({}));
        }
        tab.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        tab.size(1280, 900);
        tab
    }

    pub fn call(&self, method: &str, params: &Value) -> Value {
        self.chromium.borrow_mut().call(Some(&self.session), method, params)
    }

    pub fn size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// What the device prefers, and whether the page is shown or printed.
    pub fn prefers(&self, device: Device, media: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": device.name() },
            { "name": "prefers-reduced-motion", "value": "reduce" }
        ]);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
    }

    /// Goes to a page and waits until it has loaded.
    pub fn goto(&self, path: &str) {
        self.loads(|| {
            let gone = self.call("Page.navigate", &json!({ "url": format!("{}{path}", self.url) }));
            assert!(gone["errorText"].is_null(), "{path}: {gone}");
        });
    }

    /// Does something that leads to another page, and waits until that has loaded.
    pub fn loads(&self, act: impl FnOnce()) {
        self.chromium.borrow_mut().take(&self.session, &["Page.loadEventFired"]);
        act();
        self.chromium.borrow_mut().wait_for(&self.session, "Page.loadEventFired");
    }

    /// The value of an expression in the page.
    pub fn eval(&self, expression: &str) -> Value {
        self.try_eval(expression)
            .unwrap_or_else(|error| panic!("{}: {error}", &expression[..expression.len().min(200)]))
    }

    fn try_eval(&self, expression: &str) -> Result<Value, Value> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut browser = self.chromium.borrow_mut();
        let mut answer = browser.try_call(Some(&self.session), "Runtime.evaluate", &params)?;
        match answer.get_mut("exceptionDetails") {
            Some(thrown) => Err(thrown.take()),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    pub fn text(&self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_else(|| panic!("no text: {expression}")).to_owned()
    }

    /// Whether an element is on the page.
    pub fn has(&self, selector: &str) -> bool {
        self.eval(&format!("document.querySelector({}) !== null", json!(selector))) == json!(true)
    }

    pub fn path(&self) -> String {
        self.text("location.pathname + location.search")
    }

    /// All text of the page's contents.
    pub fn contents(&self) -> String {
        self.text("document.querySelector('main').innerText")
    }

    /// Waits until an expression is true in the page; while it loads another, it is asked again.
    pub fn until(&self, what: &str, expression: &str) {
        let began = Instant::now();
        while self.try_eval(expression) != Ok(json!(true)) {
            assert!(began.elapsed() < BOUND, "never {what}: {}", self.contents());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a text among the page's contents.
    pub fn until_text(&self, text: &str) {
        self.until(text, &format!("document.querySelector('main').innerText.includes({})", json!(text)));
    }

    /// Puts the focus into a field, and types in place of what is there.
    pub fn fill(&self, selector: &str, text: &str) {
        self.eval(&format!(
            "(() => {{ const field = document.querySelector({}); field.focus(); field.select(); }})()",
            json!(selector)
        ));
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Clicks where an element is, as a mouse would.
    pub fn click(&self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const one = document.querySelector({}); one.scrollIntoView({{ block: 'center' }}); \
             const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    pub fn press(&self, key: Key) {
        let (name, code, number, text, shift) = key.parts();
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": name, "code": code, "windowsVirtualKeyCode": number,
                "modifiers": shift });
            if let (Some(text), "keyDown") = (text, kind) {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// What was complained about since the last call: errors, warnings, and what the policy refused.
    pub fn complaints(&self) -> Vec<String> {
        let refused = self.eval("window.refused.splice(0)");
        let refused = refused.as_array().unwrap().iter().map(|one| format!("policy: {one}"));
        let events = self.chromium.borrow_mut().take(&self.session, &COMPLAINTS);
        // What is only advised differs with the browser's version.
        let said = events.iter().map(|event| &event["params"]);
        let said =
            said.filter(|said| said["entry"]["level"] != "verbose" && said["entry"]["level"] != "info");
        refused.chain(said.map(ToString::to_string)).collect()
    }

    pub fn set_cookie(&self, cookie: &str) {
        let (name, value) = cookie.split_once('=').unwrap();
        let cookie = json!({ "name": name, "value": value, "url": self.url, "path": "/", "secure": true,
            "httpOnly": true, "sameSite": "Strict" });
        assert_eq!(self.call("Network.setCookie", &cookie)["success"], json!(true));
    }

    pub fn cookies(&self) -> Vec<Value> {
        let context = json!({ "browserContextId": self.context });
        let mut all = self.chromium.borrow_mut().call(None, "Storage.getCookies", &context);
        all["cookies"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The page as PNG, all of it up to a height.
    pub fn picture(&self, width: u32, height_max: u64) -> Vec<u8> {
        let height =
            self.eval("document.documentElement.scrollHeight").as_u64().unwrap().clamp(200, height_max);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let how = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.call("Page.captureScreenshot", &how);
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }
}

/// A key that is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Tab,
    BackTab,
    Enter,
    Slash,
}

impl Key {
    /// Name, code, number, text and modifiers, as the protocol has them.
    const fn parts(self) -> (&'static str, &'static str, u32, Option<&'static str>, u32) {
        match self {
            Self::Tab => ("Tab", "Tab", 9, None, 0),
            Self::BackTab => ("Tab", "Tab", 9, None, 8),
            Self::Enter => ("Enter", "Enter", 13, Some("\r"), 0),
            Self::Slash => ("/", "Slash", 191, Some("/"), 0),
        }
    }
}
