//! Exit codes, as the help says them.

pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 4 not found, 5 conflict (changed by someone else), \
                              6 refused by policy or waiting for a signature, 7 time-out, 69 the hub does not answer, \
                              77 no permission.";
